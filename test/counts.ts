/**
 * How often a long test does what it does: `few` times in `npm test`, `many` times in `npm run test:long`. A file that
 * asks this stands in the list of test/projects.ts.
 */
export function times(few: number, many: number): number {
  return inFull ? many : few;
}

/** Whether tests run at length, as `npm run test:long` and `npm run test:all` have it. */
export const inFull: boolean = process.env["PARLEY_TESTS"] === "full";
