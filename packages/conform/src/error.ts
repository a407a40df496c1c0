/**
 * What kind of mistake it was. `InvalidOptions`: an option, or no test is left after the choice of tests.
 * `InvalidTests`: a file of tests that cannot be read, or says something that the runner does not know.
 * `NothingToTest`: the server cannot be reached, has no card, or its card names no binding that can be tested.
 */
export type ConformErrorCode = "InvalidOptions" | "InvalidTests" | "NothingToTest";

/** Why there is no report. A test that fails is none of these: it stands in the report. */
export class ConformError extends Error {
  /** Always `ConformError`. */
  override readonly name = "ConformError";
  /** What went wrong. */
  readonly code: ConformErrorCode;

  /** `message`: a sentence for people. */
  constructor(code: ConformErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
