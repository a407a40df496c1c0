import { defineAgent, memoryStore } from "@parley/a2a";
import { serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";

/**
 * The server that is fuzzed: a process of its own, so that its memory is its own and a crash is seen. Its argument is the
 * file of its database; without one it keeps everything in memory.
 */

/** What it has come to; sent whenever the test asks. */
export interface Stats {
  /** Resident memory after a collection, in bytes. */
  readonly resident: number;
  /** Of that, what is in use on the heap and in buffers. */
  readonly live: number;
  /** What was handed to the store, in items. */
  readonly appended: number;
  /** Lines that an operator would have to look at. */
  readonly errors: readonly string[];
}

/** Small enough that a body over it is cheap to send a thousand times. */
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
    store,
    logger,
    // What is answered directly is stored as well, so that a count of what is stored misses nothing.
    conversations: "store",
    // What is said under an id that was accepted before is refused, and not one message more for the store to hold.
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
