import {
  testsOf,
  type BindingReport,
  type NotAskedReason,
  type NotRun,
  type TestReport,
  type Verdict,
} from "./report.ts";

/** The verdict on what was run. `omitted`: MUST checks that the choice of tests left out. */
export function verdictOf(bindings: readonly BindingReport[], notRun: readonly NotRun[], omitted: number): Verdict {
  const tests = testsOf({ bindings });
  const musts = tests.filter(({ level }) => level === "must");
  const asked = musts.filter(({ result }) => result !== "skip").length;
  const held = musts.filter(({ result }) => result === "pass").length;
  const reasons = new Map<string, NotAskedReason>();
  const add = ({ reason, option, checks }: NotAskedReason): void => {
    if (checks === 0) return;
    const before = reasons.get(reason)?.checks ?? 0;
    reasons.set(reason, { reason, ...(option === undefined ? {} : { option }), checks: before + checks });
  };
  for (const { skipped } of musts) {
    if (skipped?.applies !== true) continue;
    const { kind = skipped.reason, option } = skipped;
    add({ reason: kind, ...(option === undefined ? {} : { option }), checks: 1 });
  }
  for (const { binding, reason, musts: checks } of notRun) add({ reason: `${binding}: ${reason}`, checks });
  add({ reason: "left out by the choice of tests", option: "choice", checks: omitted });
  const notAsked = [...reasons.values()].reduce((sum, { checks }) => sum + checks, 0);
  return {
    result: resultOf(tests, { asked, held, notAsked }),
    asked,
    held,
    broken: asked - held,
    notAsked,
    reasons: [...reasons.values()].sort((a, b) => b.checks - a.checks),
  };
}

function resultOf(
  tests: readonly TestReport[],
  { asked, held, notAsked }: Pick<Verdict, "asked" | "held" | "notAsked">,
): Verdict["result"] {
  if (asked > held) return "broken";
  if (tests.every(({ result }) => result === "skip")) return "untested";
  return asked === 0 || notAsked > 0 ? "partial" : "conformant";
}

const checks = (count: number): string => `${count} MUST ${count === 1 ? "check" : "checks"}`;

/** The verdict in a sentence, without the reasons. */
export function describeVerdict({ result, asked, held, broken, notAsked }: Verdict): string {
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
