/** The length of tests: `middle` in `.ci/run`, `full` in `.ci/run --full` and `npm run test:long`, else as in `npm test`. */
const length = process.env["PARLEY_TESTS"];

/**
 * The number of repetitions in a long test: `few` in `npm test`, `many` at full length, and their geometric mean at the middle length, such as
 * 29 kills between 4 and 200. Files that call this must be listed in test/projects.ts.
 */
export function times(few: number, many: number): number {
  if (length === "middle") return Math.ceil(Math.sqrt(few * many));
  return inFull ? many : few;
}

/** Whether tests run at full length, as in `npm run test:long` and `npm run test:all`. */
export const inFull: boolean = length === "full";

/** Whether tests run at the middle or full length: no part of a suite is left out, and files are on the disk. */
export const atLength: boolean = inFull || length === "middle";
