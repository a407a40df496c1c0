import { unavailable } from "@parley/server/internal/store/index";

/** Milliseconds more than the limit of the server, after which a connection without an answer is lost. */
const silenceMargin = 5000;

/** Milliseconds more than a call has, after which a connection without an answer is lost. */
export const answerMargin = 1000;

/** Milliseconds without an answer to what costs the server nothing, after which it is asked on another connection: a node that beats on it must not seem dead. */
export const quickSilence = 1500;

/** The same for the connection that listens, of which there is one. */
export const listenSilence = 5000;

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
