import { check, show, type Mismatch } from "./assert.ts";
import { streams, type OpenStream, type Outcome } from "./caller.ts";
import { errorRoot, hasError, notThis, readError, showError, type WireError } from "./errors.ts";
import { checkStream } from "./events.ts";
import type {
  CallStep,
  Credentials,
  DeliveriesStep,
  Expect,
  ExpectError,
  ExpectStream,
  Json,
  JsonMap,
  NamedAssertion,
  RawStep,
  Step,
  StreamStep,
  Test,
} from "./format.ts";
import { Unreachable } from "./http.ts";
import { find, findAll, holds, isMap, member } from "./path.ts";
import { BrokenWire } from "./stream.ts";
import { requiredExtensions, type Target } from "./target.ts";
import { resolve, Unresolved } from "./template.ts";
import type { Inbox } from "./webhooks.ts";

export interface Failure {
  readonly message: string;
  readonly stepId?: string;
  readonly expected?: string;
  readonly actual?: string;
  readonly path?: string;
}

export interface StepResult {
  readonly id: string;
  readonly result: "pass" | "fail" | "error";
  readonly duration: number;
}

export interface TestResult {
  readonly result: "pass" | "fail" | "skip" | "error";
  /** In milliseconds. */
  readonly duration: number;
  readonly skipReason?: string;
  readonly failure?: Failure;
  readonly steps: readonly StepResult[];
}

/** The server did not do what a step asks of it. */
class Failed extends Error {
  readonly mismatch: Mismatch | undefined;

  constructor(message: string, mismatch?: Mismatch) {
    super(message);
    this.mismatch = mismatch;
  }
}

const servers = [Failed, BrokenWire, Unreachable, Unresolved] as const;

interface Kept {
  readonly response?: Json;
  readonly captured: ReadonlyMap<string, Json>;
  readonly stream?: OpenStream;
}

/** Before the name of a header, in a capture. */
const headerPath = "$headers.";

const pause = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));

/** Runs one test. Everything that it opened is closed when it returns; never throws. */
export async function runTest(test: Test, target: Target): Promise<TestResult> {
  const run = new Run(test, target);
  const began = performance.now();
  const steps: StepResult[] = [];
  let failure: Failure | undefined;
  let result: TestResult["result"] = "pass";
  let at = "";
  let since = began;
  try {
    await run.begin();
    for (const step of test.steps) {
      at = step.id;
      since = performance.now();
      await run.step(step);
      steps.push({ id: at, result: "pass", duration: performance.now() - since });
    }
    at = "";
    for (const assertion of test.assertions) run.named(assertion);
  } catch (error) {
    // What the wire did is the server's; anything else is a mistake of the test or of the runner.
    result = servers.some((one) => error instanceof one) ? "fail" : "error";
    failure = failureOf(error, at);
    if (at !== "") steps.push({ id: at, result, duration: performance.now() - since });
  } finally {
    run.end();
  }
  return { result, duration: performance.now() - began, ...(failure === undefined ? {} : { failure }), steps };
}

function failureOf(error: unknown, stepId: string): Failure {
  const message = error instanceof Error ? error.message : String(error);
  const mismatch = error instanceof Failed ? error.mismatch : undefined;
  return {
    message,
    ...(stepId === "" ? {} : { stepId }),
    ...(mismatch === undefined
      ? {}
      : {
          expected: mismatch.expected,
          actual: mismatch.actual,
          ...(mismatch.path === "" ? {} : { path: mismatch.path }),
        }),
  };
}

class Run {
  readonly #test: Test;
  readonly #target: Target;
  readonly #kept = new Map<string, Kept>();
  #inbox: Inbox | undefined;

  constructor(test: Test, target: Target) {
    this.#test = test;
    this.#target = target;
  }

  async begin(): Promise<void> {
    if (JSON.stringify(this.#test.steps).includes("webhookUrl")) this.#inbox = await this.#target.webhooks.open();
  }

  end(): void {
    for (const { stream } of this.#kept.values()) stream?.live.close();
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
        this.named(step.assertion);
        break;
      case "client":
        throw new Error("a server cannot be asked how a client parses");
    }
    for (const assertion of step.assertions) this.named(assertion);
  }

  /** Checks an assertion on what earlier steps kept (ACTS §5.5). */
  named(assertion: NamedAssertion): void {
    const { path, match, any, all, none } = assertion;
    const source = this.#resolve(assertion.source.includes("{{") ? assertion.source : `{{${assertion.source}}}`);
    const root = path === undefined ? source : find(source, path);
    const fail = (mismatch: Mismatch): never => {
      throw new Failed(assertion.description ?? sentence(mismatch), mismatch);
    };
    if (match !== undefined) {
      const wrong = check(this.#resolve(match), root, path ?? "");
      if (wrong !== undefined) fail(wrong);
    }
    for (const [kind, collection] of [
      ["any", any],
      ["all", all],
      ["none", none],
    ] as const) {
      if (collection === undefined) continue;
      const wanted = this.#resolve(collection.match);
      const found = findAll(root, collection.path);
      const wrong = found.map((one) => check(wanted, one, collection.path));
      const right = wrong.filter((one) => one === undefined).length;
      if (kind === "any" && right === 0) {
        fail({ path: collection.path, expected: `one like ${show(wanted)}`, actual: show(found) });
      }
      if (kind === "none" && right > 0) {
        fail({ path: collection.path, expected: `none like ${show(wanted)}`, actual: show(found) });
      }
      const first = wrong.find((one) => one !== undefined);
      if (kind === "all" && first !== undefined) fail(first);
    }
  }

  #resolve(value: Json): Json {
    return resolve(value, (name) => this.#lookup(name));
  }

  #text(value: string): string {
    const found = this.#resolve(value);
    return typeof found === "string" ? found : JSON.stringify(found);
  }

  #lookup(name: string): Json | undefined {
    const dot = name.indexOf(".");
    const [head, rest] = dot === -1 ? [name, ""] : [name.slice(0, dot), name.slice(dot + 1)];
    const kept = this.#kept.get(head);
    if (kept !== undefined) return rest === "response" ? (kept.response ?? null) : kept.captured.get(rest);
    const { variables, env, card } = this.#target;
    // Before the extensions of a test's own.
    if (name === "requiredExtensions")
      return requiredExtensions(card)
        .map((uri) => `${uri},`)
        .join("");
    if (name === "webhookUrl" && this.#inbox !== undefined) return this.#inbox.url;
    if (Object.hasOwn(variables, name)) return variables[name];
    if (head === "env") return env[rest];
    const written = Object.hasOwn(this.#test.variables, name) ? this.#test.variables[name] : undefined;
    return written === undefined ? undefined : this.#resolve(written);
  }

  #keep(step: Step, response: Json | undefined, headers?: Outcome["headers"], stream?: OpenStream): void {
    const captured = new Map<string, Json>();
    this.#kept.set(step.id, {
      captured,
      ...(response === undefined ? {} : { response }),
      ...(stream === undefined ? {} : { stream }),
    });
    for (const [name, path] of Object.entries(step.capture)) {
      const found = path.startsWith(headerPath) ? headers?.[path.slice(headerPath.length)] : find(response, path);
      if (found === undefined)
        throw new Failed(`the answer has no ${path}`, { path, expected: "something", actual: show(response) });
      captured.set(name, found);
    }
  }

  #headers(credentials: Credentials): Record<string, string> {
    const { headers, otherHeaders, card } = this.#target;
    const extensions = requiredExtensions(card);
    const own: Readonly<Record<Credentials, Readonly<Record<string, string>>>> = {
      caller: headers,
      none: {},
      invalid: Object.fromEntries(
        Object.keys(headers).map((name) => [
          name,
          name === "authorization" ? "Bearer nobody-has-this-token" : "nobody-has-this",
        ]),
      ),
      other: otherHeaders ?? {},
    };
    return {
      "a2a-version": this.#test.version,
      ...(extensions.length === 0 ? {} : { "a2a-extensions": extensions.join(",") }),
      ...own[credentials],
    };
  }

  async #call(step: CallStep): Promise<void> {
    const { operation, repeat } = step;
    const { caller, timeout } = this.#target;
    for (let attempt = 1; ; attempt += 1) {
      const params = complete(this.#resolve(step.params) as JsonMap);
      const headers = this.#headers(step.credentials);
      for (const [name, value] of Object.entries(step.headers)) {
        if (value === null) delete headers[name];
        else headers[name] = this.#text(value);
      }
      const outcome = await caller.call(operation, params, headers, timeout);
      await this.#judge(step, outcome, streams(operation));
      if (repeat === undefined || holds(repeat.until, this.#kept.get(step.id)?.response)) return;
      if (attempt >= repeat.attempts) {
        throw new Failed(`not true after ${repeat.attempts} attempts: ${repeat.until}`, {
          path: "",
          expected: repeat.until,
          actual: show(this.#kept.get(step.id)?.response),
        });
      }
      const factor = repeat.backoff === "linear" ? attempt : repeat.backoff === "exponential" ? 2 ** (attempt - 1) : 1;
      await pause(repeat.delay * factor);
    }
  }

  async #raw(step: RawStep): Promise<void> {
    const { caller, timeout } = this.#target;
    const body = step.body === undefined ? undefined : this.#resolve(step.body);
    const text =
      step.bodyRaw ?? (body === undefined ? undefined : JSON.stringify(step.literal ? body : completeBody(body)));
    // Of the runner's own headers only who calls: a raw step says the others itself.
    const { "a2a-version": _, ...own } = this.#headers(step.credentials);
    const headers = { ...own, ...lowered(step.headers, (value) => this.#text(value)) };
    const path = this.#text(step.path);
    const outcome = await caller.raw?.(
      { method: step.method, path, headers, ...(text === undefined ? {} : { body: text }) },
      timeout,
    );
    if (outcome === undefined) throw new Error("this binding has no raw requests");
    await this.#judge(step, outcome, step.expectStream !== undefined);
  }

  async #judge(step: CallStep | RawStep, outcome: Outcome, streaming: boolean): Promise<void> {
    const { expect, expectError, expectStream } = step;
    const first = outcome.stream === undefined ? undefined : await this.#opened(outcome.stream, step);
    const raw = step.kind === "raw";
    const bodyError = raw && hasError(outcome.body) ? readError(outcome.body, outcome.status) : undefined;
    const error = outcome.error ?? bodyError ?? first;
    if (expectError !== undefined || expect?.error === true) {
      if (error === undefined) {
        throw new Failed("an error was expected", {
          path: "",
          expected:
            expectError === undefined || expectError.types.length === 0 ? "an error" : expectError.types.join(" or "),
          actual: outcome.stream === undefined ? show(outcome.value) : "a stream",
        });
      }
      this.#judgeError(expectError, error, outcome);
      this.#keep(step, errorRoot(error), outcome.headers);
      return;
    }
    if (error !== undefined && expect?.orError !== undefined) {
      this.#judgeError({ types: expect.orError }, error, outcome);
      this.#keep(step, errorRoot(error), outcome.headers);
      return;
    }
    if (error !== undefined && !raw) {
      throw new Failed(`unexpected error: ${showError(error, outcome.status)}`, {
        path: "",
        expected: "success",
        actual: showError(error, outcome.status),
      });
    }
    if (expect !== undefined) this.#judgeAnswer(expect, outcome, step);
    if (outcome.stream !== undefined) await this.#judgeEvents(step, outcome.stream, expectStream);
    else if (streaming)
      throw new Failed("the answer is no stream", {
        path: "",
        expected: "text/event-stream",
        actual: show(outcome.body),
      });
    else this.#keep(step, outcome.value, outcome.headers);
  }

  /** Waits for the first event: an error may be all that a stream says. */
  async #opened(stream: OpenStream, step: CallStep | RawStep): Promise<WireError | undefined> {
    const { live } = stream;
    this.#kept.set(step.id, { captured: new Map(), stream });
    await live.until(1, step.expectStream?.timeout ?? this.#target.timeout);
    const [raw] = live.raw;
    if (raw === undefined) return undefined;
    const payload = stream.payload(raw);
    return "error" in payload ? payload.error : undefined;
  }

  #judgeError(expected: ExpectError | undefined, error: WireError, { status, headers }: Outcome): void {
    if (expected === undefined) return;
    const wrongKind = notThis(expected.types, error, this.#target.caller.transport, status);
    if (wrongKind !== undefined) {
      throw new Failed("it is another error", { path: "", expected: wrongKind, actual: showError(error, status) });
    }
    const asked: readonly (readonly [Json | undefined, Json | undefined, string])[] = [
      [expected.message, error.message, "error.message"],
      [expected.details, error.details, "error.details"],
      [expected.status, status, "status"],
      [expected.headers, headers, "headers"],
    ];
    for (const [assertion, value, path] of asked) {
      const wrong = assertion === undefined ? undefined : check(this.#resolve(assertion), value, path);
      if (wrong !== undefined) throw new Failed(sentence(wrong), wrong);
    }
  }

  #judgeAnswer(expected: Expect, outcome: Outcome, step: CallStep | RawStep): void {
    // In a call 200 stands for success on every binding (ACTS §6.1); HTTP has more words for it.
    const success = step.kind === "call" && outcome.status >= 200 && outcome.status < 300;
    const asked: readonly (readonly [Json | undefined, Json | undefined, string])[] = [
      [expected.status, success ? 200 : outcome.status, "status"],
      [expected.headers, outcome.headers, "headers"],
      [expected.body, outcome.value, ""],
    ];
    for (const [assertion, value, path] of asked) {
      const wrong = assertion === undefined ? undefined : check(this.#resolve(assertion), value, path);
      if (wrong !== undefined) throw new Failed(sentence(wrong), wrong);
    }
  }

  async #judgeEvents(step: CallStep | RawStep, stream: OpenStream, expected: ExpectStream | undefined): Promise<void> {
    const timeout = expected?.timeout ?? this.#target.timeout;
    const read = step.kind === "call" ? step.read : undefined;
    if (read === undefined) await this.#ended(stream, timeout);
    else await this.#reached(stream, read, timeout);
    this.#judgeStream(step, stream, expected);
  }

  async #stream(step: StreamStep): Promise<void> {
    const stream = this.#kept.get(step.stream)?.stream;
    if (stream === undefined) throw new Error(`the step ${step.stream} has opened no stream`);
    const timeout = step.expectStream?.timeout ?? this.#target.timeout;
    if (step.read !== undefined) await this.#reached(stream, step.read, timeout);
    else if (!step.disconnect) await this.#ended(stream, timeout);
    if (step.disconnect) stream.live.close();
    this.#judgeStream(step, stream, step.expectStream);
  }

  async #ended({ live }: OpenStream, timeout: number): Promise<void> {
    if (await live.end(timeout)) return;
    const actual = `it is open after ${timeout} ms and ${live.raw.length} events, the last ${show(live.raw.at(-1))}`;
    live.close();
    throw new Failed("the stream does not end", { path: "", expected: "the end of the stream", actual });
  }

  async #reached({ live }: OpenStream, count: number, timeout: number): Promise<void> {
    if (await live.until(count, timeout)) return;
    const why = live.ended ? "then it ends" : `nothing more within ${timeout} ms`;
    throw new Failed("the stream has too few events", {
      path: "",
      expected: `at least ${count} events`,
      actual: `${live.raw.length}, ${why}`,
    });
  }

  #payloads({ live, payload }: OpenStream): readonly Json[] {
    return live.raw.map((raw) => {
      const one = payload(raw);
      if ("error" in one) throw new Failed(`the stream ends with an error: ${showError(one.error, live.status)}`);
      return one.value;
    });
  }

  #judgeStream(step: Step, stream: OpenStream, expected: ExpectStream | undefined): void {
    const events = this.#payloads(stream);
    if (expected !== undefined) {
      const { sameUpdatesAs } = expected;
      const other = sameUpdatesAs === undefined ? undefined : this.#kept.get(sameUpdatesAs)?.stream;
      if (sameUpdatesAs !== undefined && other === undefined)
        throw new Error(`the step ${sameUpdatesAs} has no stream`);
      const wrong = checkStream(
        this.#resolve(expected as unknown as Json) as unknown as ExpectStream,
        events,
        stream.live.raw,
        stream.live.headers,
        other === undefined ? undefined : this.#payloads(other),
      );
      if (wrong !== undefined) throw new Failed(sentence(wrong), wrong);
    }
    this.#keep(step, { events }, stream.live.headers, stream);
  }

  async #deliveries(step: DeliveriesStep): Promise<void> {
    const inbox = this.#inbox;
    if (inbox === undefined) throw new Error("no step has told the server of {{webhookUrl}}");
    if (step.none) {
      const [first] = inbox.deliveries;
      if (first === undefined) return;
      throw new Failed("something was delivered", { path: "deliveries", expected: "nothing", actual: show(first) });
    }
    const until = step.until === undefined ? {} : this.#resolve(step.until);
    const matches = (): boolean => inbox.deliveries.some((one) => check(until, one) === undefined);
    if (!(await inbox.until(matches, this.#target.timeout))) {
      throw new Failed(`no such delivery within ${this.#target.timeout} ms`, {
        path: "deliveries",
        expected: show(until),
        actual: show(inbox.deliveries),
      });
    }
    for (const [at, one] of inbox.deliveries.entries()) {
      const wrong = step.each === undefined ? undefined : check(this.#resolve(step.each), one, `deliveries[${at}]`);
      if (wrong !== undefined) throw new Failed(sentence(wrong), wrong);
    }
    this.#keep(step, { deliveries: [...inbox.deliveries] });
  }
}

function sentence({ path, expected, actual }: Mismatch): string {
  return `${path === "" ? "" : `${path}: `}expected ${expected}, got ${actual}`;
}

function lowered(
  headers: Readonly<Record<string, string>>,
  map: (value: string) => string,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), map(value)]));
}

/**
 * What the runner adds to a request: a message has an id (ACTS §4.3). Files also write the ids of a message beside it, and
 * a webhook's configuration as an object of its own; neither is a field of A2A 1.0, and what they mean is clear.
 */
function complete(params: JsonMap): JsonMap {
  const { message, taskId, contextId, pushNotificationConfig, ...rest } = params;
  if (isMap(message)) {
    const ids = { ...(taskId === undefined ? {} : { taskId }), ...(contextId === undefined ? {} : { contextId }) };
    return { ...rest, message: { messageId: crypto.randomUUID(), ...message, ...ids } };
  }
  if (isMap(pushNotificationConfig))
    return { ...rest, ...(taskId === undefined ? {} : { taskId }), ...pushNotificationConfig };
  return params;
}

/** The same for a body that a test wrote itself: the params of a JSON-RPC request, or the body of a REST one. */
function completeBody(body: Json): Json {
  if (!isMap(body)) return body;
  const params = member(body, "params");
  if (isMap(params)) return { ...body, params: complete(params) };
  return complete(body);
}
