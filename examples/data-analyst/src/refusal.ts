/**
 * Why a table cannot be used. The message is for the person who sent it, and reveals no internals of the agent.
 *
 * `rejected` is for a request that the agent does not take on: the file is not CSV, or its address is rejected. `failed` is for
 * work that began and cannot be finished: a file with a broken row, or an address that does not answer (A2A 1.0 §4.1.3).
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

/** The rejection of something that is not CSV. Names its format, and what to send instead. */
export function notCsv(what: string, hint: string = wanted): Refusal {
  return new Refusal("rejected", `${what} ${hint}`);
}
