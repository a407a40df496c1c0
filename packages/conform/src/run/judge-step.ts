import { defined } from "@parley/a2a/internal/base/defined";
import type {
  CallStep,
  CollectionMatch,
  Expect,
  ExpectError,
  ExpectStream,
  Json,
  NamedAssertion,
  RawStep,
  Step,
  Test,
} from "../acts/format.ts";
import { find, findAll, resolve, textOf } from "../acts/values.ts";
import type { OpenStream, Outcome } from "../call/caller.ts";
import type { Inbox } from "../call/webhooks.ts";
import { check, demand, Failed, show } from "../judge/assert.ts";
import { errorValue, hasError, errorMismatch, readError, showError, type WireError } from "../judge/errors.ts";
import { checkStream } from "../judge/events.ts";
import { requiredExtensions, type Target } from "./target.ts";

/** The results of a step. */
interface Kept {
  readonly response?: Json;
  readonly captured: ReadonlyMap<string, Json>;
  readonly stream?: OpenStream;
}

interface Results {
  readonly response?: Json | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly stream?: OpenStream;
}

/** Prefix of header names in a capture. */
const headerPath = "$headers.";

/** The values that steps can refer to: variables, and results of earlier steps. */
export class Scope {
  readonly #test: Test;
  readonly #target: Target;
  readonly #inbox: Inbox | undefined;
  readonly #kept = new Map<string, Kept>();

  constructor(test: Test, target: Target, inbox: Inbox | undefined) {
    this.#test = test;
    this.#target = target;
    this.#inbox = inbox;
  }

  /** Closes open streams. */
  end(): void {
    for (const { stream } of this.#kept.values()) stream?.live.close();
  }

  resolve(value: Json): Json {
    return resolve(value, (name) => this.#lookup(name));
  }

  text(value: string): string {
    return textOf(this.resolve(value));
  }

  response(stepId: string): Json | undefined {
    return this.#kept.get(stepId)?.response;
  }

  stream(stepId: string): OpenStream {
    const stream = this.#kept.get(stepId)?.stream;
    if (stream === undefined) throw new Error(`step ${stepId} has not opened a stream`);
    return stream;
  }

  keep(step: Step, { response, headers, stream }: Results): void {
    const captured = new Map<string, Json>();
    this.#kept.set(step.id, { captured, ...defined({ response, stream }) });
    for (const [name, path] of Object.entries(step.capture)) {
      const found = path.startsWith(headerPath) ? headers?.[path.slice(headerPath.length)] : find(response, path);
      if (found === undefined) {
        throw new Failed(`the response has no ${path}`, { path, expected: "a value", actual: show(response) });
      }
      captured.set(name, found);
    }
  }

  /** Checks an assertion about results of earlier steps (ACTS §5.5). */
  demand({ source, path, match, any, all, none, description }: NamedAssertion): void {
    const value = this.resolve(source.includes("{{") ? source : `{{${source}}}`);
    const root = path === undefined ? value : find(value, path);
    if (match !== undefined) demand(check(this.resolve(match), root, path ?? ""), description);
    const judge = (collection: CollectionMatch, quantifier: "any" | "all" | "none"): void => {
      const wanted = this.resolve(collection.match);
      const found = findAll(root, collection.path);
      const wrong = found.map((one) => check(wanted, one, collection.path));
      const firstWrong = wrong.find((one) => one !== undefined);
      if (quantifier === "all") return demand(firstWrong, description);
      if (wrong.includes(undefined) === (quantifier === "any")) return;
      const expected = `${quantifier === "any" ? "a value" : "no value"} that matches ${show(wanted)}`;
      demand({ path: collection.path, expected, actual: show(found) }, description);
    };
    if (any !== undefined) judge(any, "any");
    if (all !== undefined) judge(all, "all");
    if (none !== undefined) judge(none, "none");
  }

  #lookup(name: string): Json | undefined {
    const dot = name.indexOf(".");
    const [head, rest] = dot === -1 ? [name, ""] : [name.slice(0, dot), name.slice(dot + 1)];
    const kept = this.#kept.get(head);
    if (kept !== undefined) return rest === "response" ? (kept.response ?? null) : kept.captured.get(rest);
    const { variables, env, card } = this.#target;
    if (Object.hasOwn(variables, name)) return variables[name];
    if (name === "webhookUrl" && this.#inbox !== undefined) return this.#inbox.url;
    // Each URI ends with a comma, because tests append their own extensions.
    if (name === "requiredExtensions") return requiredExtensions(card).reduce((all, uri) => `${all}${uri},`, "");
    const written = Object.hasOwn(this.#test.variables, name) ? this.#test.variables[name] : undefined;
    if (written !== undefined) return this.resolve(written);
    return head === "env" ? env[rest] : undefined;
  }
}

/** Checks the outcome of a step against its expectations, and stores it in the scope for later steps. */
export class StepJudge {
  readonly #scope: Scope;
  readonly #target: Target;

  constructor(scope: Scope, target: Target) {
    this.#scope = scope;
    this.#target = target;
  }

  /** Checks the outcome of a call or a raw request. `streaming`: the response must be a stream. */
  async outcome(step: CallStep | RawStep, outcome: Outcome, streaming: boolean): Promise<void> {
    const { expect, expectError } = step;
    const { status, headers, value, stream } = outcome;
    const first = stream === undefined ? undefined : await this.#firstError(stream, step);
    const inBody = step.kind === "raw" && hasError(outcome.body) ? readError(outcome.body, status) : undefined;
    const error = outcome.error ?? inBody ?? first;
    const wanted = expectError ?? (expect?.error === true ? { types: [] } : undefined);
    if (error === undefined && wanted !== undefined) {
      throw new Failed("expected an error", {
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
    // The assertions of a raw step apply to its body, even if that is an error.
    if (error !== undefined && step.kind === "call") {
      const actual = showError(error, status);
      throw new Failed(`unexpected error: ${actual}`, { path: "", expected: "success", actual });
    }
    if (expect !== undefined) this.#answer(expect, outcome, step.kind === "call");
    if (stream !== undefined) await this.#wholeStream(step, stream);
    else if (!streaming) this.#scope.keep(step, { response: value, headers });
    else {
      const mismatch = { path: "", expected: "text/event-stream", actual: show(outcome.body) };
      throw new Failed("the response is not a stream", mismatch);
    }
  }

  /** Checks the events of a stream so far. */
  stream(step: Step, stream: OpenStream, expected: ExpectStream | undefined): void {
    const { raw, headers } = stream.live;
    const events = payloadsOf(stream);
    if (expected !== undefined) {
      const { sameUpdatesAs } = expected;
      const other = sameUpdatesAs === undefined ? undefined : payloadsOf(this.#scope.stream(sameUpdatesAs));
      demand(checkStream(this.#resolved(expected), events, raw, headers, other));
    }
    this.#scope.keep(step, { response: { events }, headers, stream });
  }

  /** Waits for the end of a stream, at most `timeout` milliseconds. */
  async ended({ live }: OpenStream, timeout: number): Promise<void> {
    if (await live.end(timeout)) return;
    const actual = `open after ${timeout} ms and ${live.raw.length} events; the last is ${show(live.raw.at(-1))}`;
    throw new Failed("the stream does not end", { path: "", expected: "the end of the stream", actual });
  }

  /** Waits for `count` events of a stream, at most `timeout` milliseconds. */
  async reached({ live }: OpenStream, count: number, timeout: number): Promise<void> {
    if (await live.until(count, timeout)) return;
    const actual = `${live.raw.length}, then ${live.ended ? "the end" : `none within ${timeout} ms`}`;
    throw new Failed("the stream has too few events", { path: "", expected: `at least ${count} events`, actual });
  }

  /** Checks a value against an assertion, if there is one. */
  ask(assertion: Json | undefined, value: Json | undefined, path: string): void {
    if (assertion !== undefined) demand(check(this.#scope.resolve(assertion), value, path));
  }

  /** Waits for the first event: a stream may consist of one error. */
  async #firstError(stream: OpenStream, step: CallStep | RawStep): Promise<WireError | undefined> {
    // The scope closes the stream, so pass the stream to it before anything can fail.
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
      throw new Failed("wrong error", mismatch);
    }
    this.ask(expected.message, error.message, "error.message");
    this.ask(expected.details, error.details, "error.details");
    this.ask(expected.status, status, "status");
    this.ask(expected.headers, headers, "headers");
  }

  #answer(expected: Expect, { status, headers, value }: Outcome, isCall: boolean): void {
    // In a call, 200 means success on every binding (ACTS §6.1), and HTTP has several statuses for success.
    const success = isCall && status >= 200 && status < 300;
    this.ask(expected.status, success ? 200 : status, "status");
    this.ask(expected.headers, headers, "headers");
    this.ask(expected.body, value, "");
  }

  #resolved({ events, finalEvent, eachEvent, eachRaw, headers, ...rest }: ExpectStream): ExpectStream {
    const scope = this.#scope;
    const resolve = (assertion: Json | undefined): Json | undefined =>
      assertion === undefined ? undefined : scope.resolve(assertion);
    return {
      ...rest,
      events: events.map((event) => ({ ...event, assertion: scope.resolve(event.assertion) })),
      ...defined({
        finalEvent: resolve(finalEvent),
        eachEvent: resolve(eachEvent),
        eachRaw: resolve(eachRaw),
        headers: resolve(headers),
      }),
    };
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
