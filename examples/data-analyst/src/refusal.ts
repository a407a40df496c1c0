/**
 * Why a table cannot be worked on, in words for the person who sent it: nothing of the inside stands in them.
 *
 * `rejected` is for a request that should not have been taken up, found before any work was shown: it is no CSV, its
 * address is refused. `failed` is for work that was begun and cannot be finished: a file that breaks half-way, an
 * address that does not answer (A2A 1.0 §4.1.3).
 */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly outcome: "rejected" | "failed";

  constructor(outcome: "rejected" | "failed", message: string) {
    super(message);
    this.outcome = outcome;
  }
}

const wanted =
  "I read tables as text: one row a line, fields separated by commas, semicolons, tabs or bars, usually under a row of column names.";

/** The refusal of something that is no CSV: what it is instead, and what would do. */
export function notCsv(what: string, hint: string = wanted): Refusal {
  return new Refusal("rejected", `${what} ${hint}`);
}
