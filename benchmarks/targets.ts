import { commonMeasures, type Bound, type Case, type Measured, type Target } from "./case.ts";

/** A case with what was measured. */
export interface Result {
  readonly case: Case;
  readonly measured: Measured;
  readonly measures: Readonly<Record<string, number>>;
}

export function resultOf(one: Case, measured: Measured): Result {
  return { case: one, measured, measures: { ...commonMeasures(measured), ...measured.measures } };
}

/** How far a figure is from a bound: 1 at the bound, 2 twice as bad, below 1 better than it. */
function distance({ measure, atLeast, atMost }: Bound, measures: Readonly<Record<string, number>>): number {
  const value = measures[measure];
  // What could not be measured has not been shown.
  if (value === undefined || Number.isNaN(value)) return Infinity;
  const distances = [
    ...(atLeast === undefined ? [] : [atLeast / value]),
    ...(atMost === undefined ? [] : [value / atMost]),
  ];
  return Math.max(...distances);
}

export function isMet(target: Target, { measures }: Result): boolean {
  return distance(target, measures) <= 1;
}

/** Worse than its target by this factor, a ratio fails the gate: less may be the machine. */
const slack = 2;

/**
 * Targets that a result misses by a factor of two. Figures that depend on the machine are never looked at themselves,
 * only their ratio to the raw baseline of the same run.
 */
export function failures(result: Result): readonly Target[] {
  return result.case.targets.filter((target) => {
    if (target.gate === undefined && target.unit !== undefined) return false;
    return distance(target.gate ?? target, result.measures) > slack;
  });
}
