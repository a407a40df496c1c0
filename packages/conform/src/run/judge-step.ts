import type { CallStep, Expect, ExpectError, ExpectStream, Json, RawStep, Step } from "../acts/format.ts";
import type { OpenStream, Outcome } from "../call/caller.ts";
import { check, demand, Failed, show } from "../judge/assert.ts";
import { errorValue, hasError, errorMismatch, readError, showError, type WireError } from "../judge/errors.ts";
import { checkStream } from "../judge/events.ts";
import type { Scope } from "./scope.ts";
import type { Target } from "./target.ts";

/** Holds what came of a step against what the step expects, and keeps it in the scope for the steps after it. */
export class StepJudge {
  readonly #scope: Scope;
  readonly #target: Target;

  constructor(scope: Scope, target: Target) {
    this.#scope = scope;
    this.#target = target;
  }

  /** The outcome of a call or a raw request. `streaming`: whether the answer has to be a stream. */
  async outcome(step: CallStep | RawStep, outcome: Outcome, streaming: boolean): Promise<void> {
    const { expect, expectError } = step;
    const { status, headers, value, stream } = outcome;
    const first = stream === undefined ? undefined : await this.#firstError(stream, step);
    const inBody = step.kind === "raw" && hasError(outcome.body) ? readError(outcome.body, status) : undefined;
    const error = outcome.error ?? inBody ?? first;
    const wanted = expectError ?? (expect?.error === true ? { types: [] } : undefined);
    if (error === undefined && wanted !== undefined) {
      throw new Failed("an error was expected", {
        path: "",
        expected: wanted.types.join(" or ") || "an error",
        actual: stream === undefined ? show(value) : "a stream",
      });
    }
    const allowed = wanted ?? (expect?.orError === undefined ? undefined : { types: expect.orError });
    if (error !== undefined && allowed !== undefined) {
      this.#error(allowed, error, outcome);
      this.#scope.keep(step, { response: errorValue(error), headers });
      return;
    }
    // The assertions of a raw step are about its body, error or not.
    if (error !== undefined && step.kind === "call") {
      const actual = showError(error, status);
      throw new Failed(`unexpected error: ${actual}`, { path: "", expected: "success", actual });
    }
    if (expect !== undefined) this.#answer(expect, outcome, step.kind === "call");
    if (stream !== undefined) await this.#wholeStream(step, stream);
    else if (!streaming) this.#scope.keep(step, { response: value, headers });
    else {
      const mismatch = { path: "", expected: "text/event-stream", actual: show(outcome.body) };
      throw new Failed("the answer is not a stream", mismatch);
    }
  }

  /** The events of a stream so far. */
  stream(step: Step, stream: OpenStream, expected: ExpectStream | undefined): void {
    const { raw, headers } = stream.live;
    const events = payloadsOf(stream);
    if (expected !== undefined) {
      const { sameUpdatesAs } = expected;
      const other = sameUpdatesAs === undefined ? undefined : payloadsOf(this.#scope.stream(sameUpdatesAs));
      const resolved = this.#scope.resolve(expected as unknown as Json) as unknown as ExpectStream;
      demand(checkStream(resolved, events, raw, headers, other));
    }
    this.#scope.keep(step, { response: { events }, headers, stream });
  }

  /** Waits for the end of a stream, at most `timeout` milliseconds. */
  async ended({ live }: OpenStream, timeout: number): Promise<void> {
    if (await live.end(timeout)) return;
    const actual = `it is open after ${timeout} ms and ${live.raw.length} events, the last ${show(live.raw.at(-1))}`;
    throw new Failed("the stream does not end", { path: "", expected: "the end of the stream", actual });
  }

  /** Waits for so many events of a stream, at most `timeout` milliseconds. */
  async reached({ live }: OpenStream, count: number, timeout: number): Promise<void> {
    if (await live.until(count, timeout)) return;
    const actual = `${live.raw.length}, ${live.ended ? "then it ends" : `nothing more within ${timeout} ms`}`;
    throw new Failed("the stream has too few events", { path: "", expected: `at least ${count} events`, actual });
  }

  /** Asks an assertion of a value, if there is one. */
  ask(assertion: Json | undefined, value: Json | undefined, path: string): void {
    if (assertion !== undefined) demand(check(this.#scope.resolve(assertion), value, path));
  }

  /** Waits for the first event: a stream may begin with an error, and have nothing else. */
  async #firstError(stream: OpenStream, step: CallStep | RawStep): Promise<WireError | undefined> {
    // The scope closes what it keeps, so it has to know the stream before anything can fail.
    this.#scope.keep({ ...step, capture: {} }, { stream });
    await stream.live.until(1, step.expectStream?.timeout ?? this.#target.timeout);
    const [raw] = stream.live.raw;
    if (raw === undefined) return undefined;
    const payload = stream.payload(raw);
    return "error" in payload ? payload.error : undefined;
  }

  #error(expected: ExpectError, error: WireError, { status, headers }: Outcome): void {
    const wrongKind = errorMismatch(expected.types, error, this.#target.caller.errors, status);
    if (wrongKind !== undefined) {
      const mismatch = { path: "", expected: wrongKind, actual: showError(error, status) };
      throw new Failed("it is another error", mismatch);
    }
    this.ask(expected.message, error.message, "error.message");
    this.ask(expected.details, error.details, "error.details");
    this.ask(expected.status, status, "status");
    this.ask(expected.headers, headers, "headers");
  }

  #answer(expected: Expect, { status, headers, value }: Outcome, isCall: boolean): void {
    // In a call 200 stands for success on every binding (ACTS §6.1), and HTTP has several statuses for that.
    const success = isCall && status >= 200 && status < 300;
    this.ask(expected.status, success ? 200 : status, "status");
    this.ask(expected.headers, headers, "headers");
    this.ask(expected.body, value, "");
  }

  async #wholeStream(step: CallStep | RawStep, stream: OpenStream): Promise<void> {
    const { expectStream } = step;
    const timeout = expectStream?.timeout ?? this.#target.timeout;
    const read = step.kind === "call" ? step.read : undefined;
    if (read === undefined) await this.ended(stream, timeout);
    else await this.reached(stream, read, timeout);
    this.stream(step, stream, expectStream);
  }
}

function payloadsOf({ live, payload }: OpenStream): readonly Json[] {
  return live.raw.map((raw) => {
    const one = payload(raw);
    if ("error" in one) throw new Failed(`the stream ends with an error: ${showError(one.error, live.status)}`);
    return one.value;
  });
}
