import { defineAgent, memoryStore, serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";

/**
 * The fuzzed server. It has a separate process, so that tests can measure its memory and notice a crash. Its argument is
 * its database file. Without one it keeps everything in memory.
 */

/** The server's figures, which the test requests. */
export interface Stats {
  /** Resident memory after a garbage collection, in bytes. */
  readonly resident: number;
  /** Memory in use on the heap and in buffers, in bytes. */
  readonly live: number;
  /** How many items were appended to the store. */
  readonly appended: number;
  /** Warnings and errors of the log. */
  readonly errors: readonly string[];
}

/** The limit for bodies. It is small, so that the test can send a thousand larger bodies. */
export const bodyBytes = 64 * 1024;

const agent = defineAgent({
  name: "Parrot",
  description: "Repeats what it is told",
  version: "1.0.0",
  skills: [],
  defaultInputModes: ["*/*"],
  async *onMessage(turn) {
    if (turn.text === "ask") yield turn.inputRequired("What?");
    else if (turn.text === "work") yield turn.artifact({ parts: [{ text: "done" }] });
    else return turn.reply(`You said ${turn.text.length} characters`);
    return undefined;
  },
});

if (process.send !== undefined) {
  const errors: string[] = [];
  let appended = 0;
  const path = process.argv[2];
  const store = path === undefined ? memoryStore() : await sqliteStore({ path });
  const append = store.append.bind(store);
  store.append = (items) => {
    appended += items.length;
    return append(items);
  };
  const note = (message: string, fields?: object): void => {
    errors.push(
      `${message} ${JSON.stringify(fields, (_name, value: unknown) => (value instanceof Error ? value.stack : value))}`,
    );
  };
  const quiet = (): void => {};
  const logger = { debug: quiet, info: quiet, warn: quiet, error: note };
  const server = await serve(agent, {
    port: 0,
    grpc: true,
    store,
    logger,
    // Also stores direct replies, so that the count of items includes them.
    conversations: "store",
    // Rejects different content with a used id, instead of storing it as a new message.
    dedupe: { onConflict: "refuse" },
    limits: { bodyBytes },
  });

  process.on("message", () => {
    for (let round = 0; round < 4; round += 1) globalThis.gc?.();
    const { rss, heapUsed, external } = process.memoryUsage();
    const stats: Stats = { resident: rss, live: heapUsed + external, appended, errors: errors.splice(0) };
    process.send?.(stats);
  });
  process.send({ port: server.port });
}
