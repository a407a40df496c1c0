import { unavailable } from "@parley/a2a/store";

/** Milliseconds more than the limit of the server, after which a connection without an answer is lost. */
const silenceMargin = 5000;

/** The longest time limit that PostgreSQL takes, in milliseconds. */
const longest = 2 ** 31 - 1;

/** Milliseconds without an answer to a statement, after which its connection counts as lost. 0: never, where the statement has no limit. */
export function silenceAfter(statementTimeout: number): number {
  return statementTimeout === 0 ? 0 : statementTimeout + silenceMargin;
}

/**
 * Checks time limits, which go into statements.
 *
 * @throws A2AError `Unavailable` for what is no number of milliseconds.
 */
export function checkLimits(limits: Readonly<Record<string, number>>): void {
  for (const [name, ms] of Object.entries(limits)) {
    if (!(ms >= 0 && ms <= longest)) {
      throw unavailable(`${name} is ${String(ms)}. It must be milliseconds, at least 0 and at most ${longest}`);
    }
  }
}
