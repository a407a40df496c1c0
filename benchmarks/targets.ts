import { commonMeasures, type Case, type Measured, type Target } from "./case.ts";

/** A case with its figures. */
export interface Result {
  readonly case: Case;
  readonly measured: Measured;
  readonly measures: Readonly<Record<string, number>>;
}

export function resultOf(one: Case, measured: Measured): Result {
  return { case: one, measured, measures: { ...commonMeasures(measured), ...measured.measures } };
}

/** A target without a figure counts as not met. */
export function isMet({ measure, atLeast = -Infinity, atMost = Infinity }: Target, { measures }: Result): boolean {
  const value = measures[measure] ?? Number.NaN;
  return value >= atLeast && value <= atMost;
}
