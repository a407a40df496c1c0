/** How long tests are: `middle` in `.ci/run`, `full` in `.ci/run --full` and `npm run test:long`, else as in `npm test`. */
const length = process.env["PARLEY_TESTS"];

/**
 * How often a long test does what it does: `few` times in `npm test`, `many` times at full length, and in the middle the geometric mean of
 * both, such as 29 kills between 4 and 200. A file that asks this stands in the list of test/projects.ts.
 */
export function times(few: number, many: number): number {
  if (length === "middle") return Math.ceil(Math.sqrt(few * many));
  return inFull ? many : few;
}

/** Whether tests run at full length, as `npm run test:long` and `npm run test:all` have it. */
export const inFull: boolean = length === "full";

/** Whether they run at the middle length or at the full one: no part of a suite is left out, and files are on the disk. */
export const atLength: boolean = inFull || length === "middle";
