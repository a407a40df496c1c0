// Prints how often an operation parses JSON, writes it, checks a value against a schema, and makes a promise, by operation.

import { createHook } from "node:async_hooks";
import { Session } from "node:inspector/promises";
import { memoryStore } from "@parley/server";
import { caller, chunked, minOf, operations } from "./agent.mjs";

const { parse, stringify } = JSON;
let parses = 0;
let texts = 0;
JSON.parse = (/** @type {Parameters<typeof parse>} */ ...input) => {
  parses += 1;
  return /** @type {unknown} */ (parse(...input));
};
JSON.stringify = /** @type {typeof stringify} */ (
  (/** @type {Parameters<typeof stringify>} */ ...input) => {
    texts += 1;
    return stringify(...input);
  }
);

const session = new Session();
session.connect();
await session.post("Profiler.enable");
// V8 counts the calls of each function.
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

/** Calls of the schemas' one entrance since it was last asked. */
async function checks() {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  // A function that was not called since is not in the result.
  const script = result.find(({ url }) => url.endsWith("/a2a/dist/model/schema.js"));
  return script?.functions.find(({ functionName }) => functionName === "check")?.ranges[0]?.count ?? 0;
}

let promises = 0;
const hook = createHook({
  init(_id, type) {
    if (type === "PROMISE") promises += 1;
  },
});

/** @type {Readonly<Record<string, (operate: () => Promise<unknown>) => Promise<number>>>} */
const counters = {
  async parses(operate) {
    parses = 0;
    await operate();
    return parses;
  },
  async texts(operate) {
    texts = 0;
    await operate();
    return texts;
  },
  async checks(operate) {
    await checks();
    await operate();
    return checks();
  },
  async promises(operate) {
    promises = 0;
    hook.enable();
    await operate();
    hook.disable();
    return promises;
  },
};

const { call, close } = caller(memoryStore());
const all = await operations(call);
if ((await checks()) === 0) throw new Error("the entrance of the schemas is not where this program counts its calls");
/** @type {Record<string, number>} */
const counts = {};
for (const [what, count] of Object.entries(counters)) {
  for (const [name, operate] of Object.entries(all)) {
    await operate();
    counts[`${what} of ${name}`] = await minOf(20, () => count(operate));
  }
  counts[`${what} of chunk`] = await chunked(call, count);
}
process.stdout.write(stringify(counts));
await close();
