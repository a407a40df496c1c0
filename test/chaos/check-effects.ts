import type { Rule } from "./check.ts";
import { resultsIn } from "./check-tasks.ts";
import type { Effect } from "./history.ts";

/**
 * The guarantees of `turn.step()` (docs/waiting.md) for all calls with one key. Each attempt uses the same key for a step.
 *
 * - An attempt calls the function once.
 * - Only the first call may assume that there was no earlier call: every later call gets `uncertain`. So a service has the effect once if it
 *   deduplicates by key, or can be queried.
 * - Once the result of an attempt is stored, no later attempt calls the function again: the task has that result. (A call of an earlier attempt may
 *   still arrive, from a process that was paused between its last check of its lease and the request.)
 */
export const effectRule: Rule = (task) => {
  const byKey = new Map<string, Effect[]>();
  for (const entry of task.entries) {
    if (entry.type === "effect") byKey.set(entry.key, [...(byKey.get(entry.key) ?? []), entry]);
  }
  const results = resultsIn(task);
  const problems: string[] = [];
  for (const [key, calls] of byKey) {
    const attempts = calls.map(({ attempt }) => attempt);
    const told = `attempts ${calls.map(({ attempt, uncertain }) => `${attempt}${uncertain ? "?" : ""}`).join(", ")}`;
    if (new Set(attempts).size !== attempts.length)
      problems.push(`Step ${key} was called twice in an attempt: ${told}`);
    const sure = calls.filter(({ uncertain }) => !uncertain);
    if (sure.length > 1 || (sure[0] !== undefined && sure[0].attempt > Math.min(...attempts)))
      problems.push(`Step ${key} was called again without being told: ${told}`);
    const stored = results.filter((result) => result.key === key);
    if (stored.length > 1) problems.push(`The result of step ${key} is there ${stored.length} times`);
    const [result] = stored;
    if (result === undefined) continue;
    if (attempts.some((attempt) => attempt > result.attempt))
      problems.push(`Step ${key} was called after its result of attempt ${result.attempt} was stored: ${told}`);
    if (!calls.some(({ call, attempt }) => call === result.call && attempt === result.attempt))
      problems.push(`Step ${key} has a result of no call: ${result.call}`);
  }
  for (const { key } of results) if (!byKey.has(key)) problems.push(`Step ${key} has a result, and was never called`);
  return problems;
};
