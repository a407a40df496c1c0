/**
 * The number of repetitions in a long test: `few` in `npm test`, `many` in `npm run test:long`. Files that call this
 * must be listed in test/projects.ts.
 */
export function times(few: number, many: number): number {
  return inFull ? many : few;
}

/** Whether tests run at full length, as in `npm run test:long` and `npm run test:all`. */
export const inFull: boolean = process.env["PARLEY_TESTS"] === "full";
