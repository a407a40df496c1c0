import { defineAgent, memoryStore, serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";

/**
 * The fuzzed server. It has a separate process, so its memory can be measured and a crash is noticed. Its argument
 * is the file of its database. Without one it keeps everything in memory.
 */

/** The figures of the server, which the test asks for. */
export interface Stats {
  /** Resident memory after a collection, in bytes. */
  readonly resident: number;
  /** The part of it that is in use on the heap and in buffers. */
  readonly live: number;
  /** How many items the store got. */
  readonly appended: number;
  /** Warnings and errors of the log. */
  readonly errors: readonly string[];
}

/** The limit of bodies. It is small, so a thousand larger bodies can be sent. */
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
    // Direct replies are stored as well, so the count of stored items includes them.
    conversations: "store",
    // Other content under a used id is rejected and not stored as another message.
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
