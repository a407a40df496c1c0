// Prints how many bytes of the heap an operation allocates: node --expose-gc and a young generation that holds them all.

import { PerformanceObserver } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { memoryStore } from "@parley/server";
import { caller, chunked, minOf, operations } from "./agent.mjs";

/** An observer reports late what is collected before it. */
let since = 0;
let collections = 0;
new PerformanceObserver((list) => {
  collections += list.getEntries().filter(({ startTime }) => startTime > since).length;
}).observe({ entryTypes: ["gc"] });

const { call, close } = caller(memoryStore());
const rounds = 40;

/** @param {() => Promise<unknown>} operate */
async function allocatedBy(operate) {
  const before = getHeapStatistics().used_heap_size;
  await operate();
  return getHeapStatistics().used_heap_size - before;
}

/** @type {Record<string, number>} */
const counts = {};
for (const [name, operate] of Object.entries(await operations(call))) {
  // Code is compiled and hidden classes are made.
  for (let round = 0; round < rounds; round += 1) await operate();
  globalThis.gc?.();
  since = performance.now();
  counts[`bytes of ${name}`] = await minOf(rounds, () => allocatedBy(operate));
  await new Promise((resolve) => setTimeout(resolve, 1));
  if (collections > 0) throw new Error(`${collections} collections while ${name} was counted`);
}
counts["bytes of chunk"] = await chunked(call, allocatedBy);
process.stdout.write(JSON.stringify(counts));
await close();
