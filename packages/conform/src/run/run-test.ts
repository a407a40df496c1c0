import { check, show } from "../judge/assert.ts";
import { streams, type OpenStream, type Outcome } from "../call/caller.ts";
import { completeBody, completeParams, inWords } from "../acts/complete.ts";
import { errorRoot, hasError, notThis, readError, showError, type WireError } from "../judge/errors.ts";
import { checkStream } from "../judge/events.ts";
import { demand, Failed } from "../judge/failed.ts";
import type {
  CallStep,
  Credentials,
  DeliveriesStep,
  Expect,
  ExpectError,
  ExpectStream,
  Json,
  JsonMap,
  RawStep,
  Step,
  StreamStep,
  Test,
} from "../acts/format.ts";
import { Unreachable } from "../call/http.ts";
import { holds } from "../acts/path.ts";
import { Scope } from "./scope.ts";
import { BrokenWire } from "../call/stream.ts";
import type { Failure, Skipped, StepReport, TestReport } from "../report/report.ts";
import { officialCheck, readingOf } from "./official.ts";
import { requiredExtensions, whySkipped, type Target } from "./target.ts";
import { Unresolved } from "../acts/template.ts";
import type { Inbox } from "../call/webhooks.ts";

/** What makes a test fail; anything else is a mistake of the test or of the runner. */
const failures = [Failed, BrokenWire, Unreachable, Unresolved] as const;

/** The reason that a run's signal has when its time limit is over. */
export class TimeIsUp extends Error {}

const pause = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));

/** Runs one test where it applies and can be asked. Never rejects; `signal` ends it. */
export async function askOne(test: Test, target: Target, signal: AbortSignal): Promise<TestReport> {
  const asked = officialCheck(test, target);
  const skipped = "reason" in asked ? asked : whySkipped(asked, target);
  const ran: Ran =
    skipped === undefined
      ? await runTest(asked as Test, target, signal)
      : { result: "skip", duration: 0, skipped, steps: [] };
  const reading = skipped === undefined ? readingOf(test) : undefined;
  const { id, name, level, specRef, tags, behaviors } = test;
  return {
    id,
    name,
    level,
    ...(specRef === undefined ? {} : { section: specRef }),
    tags,
    behaviors,
    ...ran,
    ...(reading === undefined ? {} : { reading }),
  };
}

type Ran = Pick<TestReport, "result" | "duration" | "skipped" | "failure" | "steps">;

/** Runs one test. Everything that it opened is closed when it returns. */
async function runTest(test: Test, target: Target, signal: AbortSignal): Promise<Ran> {
  const began = performance.now();
  const steps: StepReport[] = [];
  let at = "";
  let since = began;
  let run: Run | undefined;
  const play = async (): Promise<void> => {
    signal.throwIfAborted();
    const wantsWebhook = JSON.stringify(test.steps).includes("webhookUrl");
    run = new Run(test, target, wantsWebhook ? await target.webhooks.open() : undefined);
    for (const step of test.steps) {
      at = step.id;
      since = performance.now();
      await run.step(step);
      steps.push({ id: at, result: "pass", duration: performance.now() - since });
    }
    at = "";
    for (const assertion of test.assertions) run.scope.demand(assertion);
  };
  try {
    await unlessAborted(play(), signal);
    return { result: "pass", duration: performance.now() - began, steps };
  } catch (error) {
    const duration = performance.now() - began;
    if (signal.aborted) return { result: "skip", duration, skipped: outOfTime, steps: [] };
    const result = failures.some((one) => error instanceof one) ? "fail" : "error";
    if (at !== "") steps.push({ id: at, result, duration: performance.now() - since });
    return { result, duration, failure: failureOf(error, at), steps };
  } finally {
    run?.scope.end();
  }
}

const outOfTime: Skipped = { reason: "the time limit of the run was over", applies: true, option: "timeout" };

/** The promise, or a rejection as soon as the signal is aborted. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Longest text of a failure, in characters: a server can say anything, at any length. */
const longestText = 2_000;

function failureOf(error: unknown, stepId: string): Failure {
  const cut = (text: string): string => (text.length > longestText ? `${text.slice(0, longestText)}…` : text);
  const message = cut(error instanceof Error ? error.message : String(error));
  const step = stepId === "" ? {} : { stepId };
  if (!(error instanceof Failed) || error.mismatch === undefined) return { message, ...step };
  const { expected, actual, path } = error.mismatch;
  return {
    message,
    ...step,
    expected: cut(expected),
    actual: cut(actual),
    ...(path === "" ? {} : { path: cut(path) }),
  };
}

class Run {
  readonly scope: Scope;
  readonly #test: Test;
  readonly #target: Target;
  readonly #inbox: Inbox | undefined;

  constructor(test: Test, target: Target, inbox: Inbox | undefined) {
    this.scope = new Scope(test, target, inbox);
    this.#test = test;
    this.#target = target;
    this.#inbox = inbox;
  }

  async step(step: Step): Promise<void> {
    if (step.delay > 0) await pause(step.delay);
    switch (step.kind) {
      case "call":
        await this.#call(step);
        break;
      case "raw":
        await this.#raw(step);
        break;
      case "stream":
        await this.#stream(step);
        break;
      case "deliveries":
        await this.#deliveries(step);
        break;
      case "assertion":
        this.scope.demand(step.assertion);
        break;
      case "client":
        throw new Error("a server cannot be asked how a client parses");
    }
    for (const assertion of step.assertions) this.scope.demand(assertion);
  }

  #headers(credentials: Credentials): Record<string, string> {
    const { headers, otherHeaders, card } = this.#target;
    const extensions = requiredExtensions(card);
    const nobody = (name: string): string => (name === "authorization" ? "Bearer nobody" : "nobody");
    const own: Readonly<Record<Credentials, Readonly<Record<string, string>>>> = {
      caller: headers,
      none: {},
      invalid: Object.fromEntries(Object.keys(headers).map((name) => [name, nobody(name)] as const)),
      other: otherHeaders ?? {},
    };
    return {
      "a2a-version": this.#test.version,
      ...(extensions.length === 0 ? {} : { "a2a-extensions": extensions.join(",") }),
      ...own[credentials],
    };
  }

  /** The behaviours of the test in the agent's own words. */
  #inWords(value: Json): Json {
    const { words } = this.#target;
    return words === undefined ? value : inWords(value, this.#test.behaviors, words);
  }

  async #call(step: CallStep): Promise<void> {
    const { operation, repeat } = step;
    const { caller, timeout } = this.#target;
    for (let attempt = 1; ; attempt += 1) {
      const params = completeParams(this.#inWords(this.scope.resolve(step.params)) as JsonMap);
      const headers = this.#headers(step.credentials);
      for (const [name, value] of Object.entries(step.headers)) {
        if (value === null) delete headers[name];
        else headers[name] = this.scope.text(value);
      }
      await this.#judge(step, await caller.call(operation, params, headers, timeout), streams(operation));
      const response = this.scope.response(step.id);
      if (repeat === undefined || holds(repeat.until, response)) return;
      if (attempt >= repeat.attempts) {
        const mismatch = { path: "", expected: repeat.until, actual: show(response) };
        throw new Failed(`not so after ${repeat.attempts} attempts`, mismatch);
      }
      const factor = repeat.backoff === "linear" ? attempt : repeat.backoff === "exponential" ? 2 ** (attempt - 1) : 1;
      await pause(repeat.delay * factor);
    }
  }

  async #raw(step: RawStep): Promise<void> {
    const { caller, timeout } = this.#target;
    const body = step.body === undefined ? undefined : this.#inWords(this.scope.resolve(step.body));
    const written = body === undefined ? undefined : JSON.stringify(step.literal ? body : completeBody(body));
    const text = step.bodyRaw ?? written;
    // Of the runner's own headers only who calls: a raw step says the others itself.
    const { "a2a-version": _, ...headers } = this.#headers(step.credentials);
    for (const [name, value] of Object.entries(step.headers)) headers[name.toLowerCase()] = this.scope.text(value);
    const path = this.scope.text(step.path);
    const request = { method: step.method, path, headers, ...(text === undefined ? {} : { body: text }) };
    const outcome = await caller.raw?.(request, timeout);
    if (outcome === undefined) throw new Error("this binding has no raw requests");
    await this.#judge(step, outcome, step.expectStream !== undefined);
  }

  async #judge(step: CallStep | RawStep, outcome: Outcome, streaming: boolean): Promise<void> {
    const { expect, expectError } = step;
    const { status, headers, value, stream } = outcome;
    const first = stream === undefined ? undefined : await this.#opened(stream, step);
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
      this.#judgeError(allowed, error, outcome);
      this.scope.keep(step, { response: errorRoot(error), headers });
      return;
    }
    // The body of a raw step is what its assertions are about, error or not.
    if (error !== undefined && step.kind === "call") {
      const actual = showError(error, status);
      throw new Failed(`unexpected error: ${actual}`, { path: "", expected: "success", actual });
    }
    if (expect !== undefined) this.#judgeAnswer(expect, outcome, step.kind === "call");
    if (stream !== undefined) await this.#judgeEvents(step, stream);
    else if (!streaming) this.scope.keep(step, { response: value, headers });
    else {
      const mismatch = { path: "", expected: "text/event-stream", actual: show(outcome.body) };
      throw new Failed("the answer is no stream", mismatch);
    }
  }

  /** Waits for the first event: an error may be all that a stream says. */
  async #opened(stream: OpenStream, step: CallStep | RawStep): Promise<WireError | undefined> {
    // What is kept is also what is closed in the end.
    this.scope.keep({ ...step, capture: {} }, { stream });
    await stream.live.until(1, step.expectStream?.timeout ?? this.#target.timeout);
    const [raw] = stream.live.raw;
    if (raw === undefined) return undefined;
    const payload = stream.payload(raw);
    return "error" in payload ? payload.error : undefined;
  }

  #judgeError(expected: ExpectError, error: WireError, { status, headers }: Outcome): void {
    const wrongKind = notThis(expected.types, error, this.#target.caller.errors, status);
    if (wrongKind !== undefined) {
      const mismatch = { path: "", expected: wrongKind, actual: showError(error, status) };
      throw new Failed("it is another error", mismatch);
    }
    this.#ask(expected.message, error.message, "error.message");
    this.#ask(expected.details, error.details, "error.details");
    this.#ask(expected.status, status, "status");
    this.#ask(expected.headers, headers, "headers");
  }

  #judgeAnswer(expected: Expect, { status, headers, value }: Outcome, isCall: boolean): void {
    // In a call 200 stands for success on every binding (ACTS §6.1); HTTP has more words for it.
    const success = isCall && status >= 200 && status < 300;
    this.#ask(expected.status, success ? 200 : status, "status");
    this.#ask(expected.headers, headers, "headers");
    this.#ask(expected.body, value, "");
  }

  #ask(assertion: Json | undefined, value: Json | undefined, path: string): void {
    if (assertion !== undefined) demand(check(this.scope.resolve(assertion), value, path));
  }

  async #judgeEvents(step: CallStep | RawStep, stream: OpenStream): Promise<void> {
    const { expectStream } = step;
    const timeout = expectStream?.timeout ?? this.#target.timeout;
    const read = step.kind === "call" ? step.read : undefined;
    if (read === undefined) await this.#ended(stream, timeout);
    else await this.#reached(stream, read, timeout);
    this.#judgeStream(step, stream, expectStream);
  }

  async #stream(step: StreamStep): Promise<void> {
    const stream = this.scope.stream(step.stream);
    const timeout = step.expectStream?.timeout ?? this.#target.timeout;
    if (step.read !== undefined) await this.#reached(stream, step.read, timeout);
    else if (!step.disconnect) await this.#ended(stream, timeout);
    if (step.disconnect) stream.live.close();
    this.#judgeStream(step, stream, step.expectStream);
  }

  async #ended({ live }: OpenStream, timeout: number): Promise<void> {
    if (await live.end(timeout)) return;
    const actual = `it is open after ${timeout} ms and ${live.raw.length} events, the last ${show(live.raw.at(-1))}`;
    throw new Failed("the stream does not end", { path: "", expected: "the end of the stream", actual });
  }

  async #reached({ live }: OpenStream, count: number, timeout: number): Promise<void> {
    if (await live.until(count, timeout)) return;
    const actual = `${live.raw.length}, ${live.ended ? "then it ends" : `nothing more within ${timeout} ms`}`;
    throw new Failed("the stream has too few events", { path: "", expected: `at least ${count} events`, actual });
  }

  #payloads({ live, payload }: OpenStream): readonly Json[] {
    return live.raw.map((raw) => {
      const one = payload(raw);
      if ("error" in one) throw new Failed(`the stream ends with an error: ${showError(one.error, live.status)}`);
      return one.value;
    });
  }

  #judgeStream(step: Step, stream: OpenStream, expected: ExpectStream | undefined): void {
    const { raw, headers } = stream.live;
    const events = this.#payloads(stream);
    if (expected !== undefined) {
      const { sameUpdatesAs } = expected;
      const other = sameUpdatesAs === undefined ? undefined : this.#payloads(this.scope.stream(sameUpdatesAs));
      const resolved = this.scope.resolve(expected as unknown as Json) as unknown as ExpectStream;
      demand(checkStream(resolved, events, raw, headers, other));
    }
    this.scope.keep(step, { response: { events }, headers, stream });
  }

  async #deliveries(step: DeliveriesStep): Promise<void> {
    const inbox = this.#inbox;
    if (inbox === undefined) throw new Error("no step has told the server of {{webhookUrl}}");
    const { deliveries } = inbox;
    if (step.none) {
      if (deliveries.length === 0) return;
      const mismatch = { path: "deliveries", expected: "nothing", actual: show(deliveries) };
      throw new Failed("something was delivered", mismatch);
    }
    const until = step.until === undefined ? {} : this.scope.resolve(step.until);
    const { timeout } = this.#target;
    if (!(await inbox.until(() => deliveries.some((one) => check(until, one) === undefined), timeout))) {
      const mismatch = { path: "deliveries", expected: show(until), actual: show(deliveries) };
      throw new Failed(`no such delivery within ${timeout} ms`, mismatch);
    }
    for (const [at, one] of deliveries.entries()) this.#ask(step.each, one, `deliveries[${at}]`);
    this.scope.keep(step, { response: { deliveries: [...deliveries] } });
  }
}
