import { commonMeasures, defined, ratio, type Case, type Measured, type Target } from "./case.ts";

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

/** The targets that the measures can decide: those that compare Node versions need results of both. */
export function targetsOf({ case: one, measures }: Result): readonly Target[] {
  return one.targets.filter(({ acrossNodes, measure }) => acrossNodes !== true || measure in measures);
}

/** The same results, including measures that compare them with those of an older Node version. */
export function besideOlder(results: readonly Result[], older: readonly Result[]): readonly Result[] {
  return results.map((result) => {
    const same = older.find((other) => other.case.name === result.case.name);
    const cpuToOlderNode = ratio(result.measured.parley.cpu, same?.measured.parley.cpu);
    return { ...result, measures: { ...result.measures, ...defined({ cpuToOlderNode }) } };
  });
}
