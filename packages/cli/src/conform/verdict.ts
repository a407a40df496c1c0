import type { Entry, Report } from "./runner.ts";

/** What a run says about the MUSTs. A check is one test over one binding. */
export interface Verdict {
  /**
   * `conformant`: every check that applies was made, and holds. `partial`: those that were made hold. `broken`: one does
   * not. `untested`: nothing was asked at all.
   */
  readonly result: "conformant" | "partial" | "broken" | "untested";
  readonly asked: number;
  readonly held: number;
  readonly broken: number;
  /** Checks that may apply and were not made, and why. */
  readonly notAsked: number;
  readonly reasons: readonly { readonly reason: string; readonly checks: number }[];
}

export function entriesOf(report: Report): readonly Entry[] {
  return report.runs.flatMap(({ suites }) => suites.flatMap((suite) => suite.entries));
}

export function verdictOf(report: Report): Verdict {
  const entries = entriesOf(report);
  const musts = entries.filter(({ test }) => test.level === "must").map(({ result }) => result);
  const asked = musts.filter(({ result }) => result !== "skip").length;
  const held = musts.filter(({ result }) => result === "pass").length;
  const reasons = new Map<string, number>();
  const add = (reason: string, checks: number): void => {
    if (checks > 0) reasons.set(reason, (reasons.get(reason) ?? 0) + checks);
  };
  for (const { notAsked } of musts) if (notAsked !== undefined) add(notAsked, 1);
  for (const { binding, reason, musts: unmade } of report.left) add(`${binding} ${reason}`, unmade);
  add("left out by --filter, --tag, --level or --protocol", report.omitted);
  const notAsked = [...reasons.values()].reduce((sum, checks) => sum + checks, 0);
  return {
    result: resultOf(entries, { asked, held, notAsked }),
    asked,
    held,
    broken: asked - held,
    notAsked,
    reasons: [...reasons].map(([reason, checks]) => ({ reason, checks })).sort((a, b) => b.checks - a.checks),
  };
}

function resultOf(
  entries: readonly Entry[],
  { asked, held, notAsked }: Pick<Verdict, "asked" | "held" | "notAsked">,
): Verdict["result"] {
  if (asked > held) return "broken";
  if (entries.every(({ result }) => result.result === "skip")) return "untested";
  return asked === 0 || notAsked > 0 ? "partial" : "conformant";
}

const checks = (count: number): string => `${count} MUST ${count === 1 ? "check" : "checks"}`;

/** The verdict in a sentence, without the reasons. */
export function sentenceOf({ result, asked, held, broken, notAsked }: Verdict): string {
  const rest = notAsked === 0 ? "" : `; ${checks(notAsked)} that may apply ${notAsked === 1 ? "was" : "were"} not made`;
  switch (result) {
    case "conformant":
      return `Conformant: every MUST that applies was asked and holds (${checks(held)}).`;
    case "partial":
      return asked === 0
        ? `No MUST was asked${rest}.`
        : `Nothing is broken, but not all was asked: ${checks(asked)} ${asked === 1 ? "was made and holds" : "were made and hold"}${rest}.`;
    case "broken":
      return `Not conformant: ${broken} of ${checks(asked)} ${broken === 1 ? "does" : "do"} not hold${rest}.`;
    case "untested":
      return `Nothing was tested${rest}.`;
  }
}
