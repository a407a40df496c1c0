import { setTimeout as pause } from "node:timers/promises";
import { defined } from "@parley/a2a/internal/base/defined";
import { cut } from "@parley/a2a/internal/base/display";
import type { CallStep, Credentials, DeliveriesStep, Json, RawStep, Step, StreamStep, Test } from "../acts/format.ts";
import { completeBody, completeParams, holds, inWords, isMap, Unresolved } from "../acts/values.ts";
import { streams, type Outcome } from "../call/caller.ts";
import { NoAnswer } from "../call/http.ts";
import { InvalidAnswer } from "../call/stream.ts";
import type { Inbox } from "../call/webhooks.ts";
import { check, Failed, show } from "../judge/assert.ts";
import type { Failure, Skipped, StepReport, TestReport } from "../report/report.ts";
import { Scope, StepJudge } from "./judge-step.ts";
import { officialCheck, readingOf } from "./official.ts";
import { requiredExtensions, whySkipped, type Target } from "./target.ts";

/** Errors that fail a test. Any other error is a bug of the test or the runner. */
const failures = [Failed, InvalidAnswer, NoAnswer, Unresolved] as const;

/** The abort reason when a run exceeds its time limit. */
export class TimeIsUp extends Error {}

/** Runs or skips a test. Never rejects. Ends when `signal` is aborted. */
export async function askOne(test: Test, target: Target, signal: AbortSignal): Promise<TestReport> {
  const { id, name, level, specRef, requirements, tags, behaviors } = test;
  const report = { id, name, level, ...defined({ section: specRef }), requirements, tags, behaviors };
  const asked = officialCheck(test, target);
  if ("reason" in asked) return { ...report, ...skip(asked) };
  const skipped = whySkipped(asked, target);
  if (skipped !== undefined) return { ...report, ...skip(skipped) };
  return { ...report, ...defined({ reading: readingOf(test) }), ...(await runTest(asked, target, signal)) };
}

type Ran = Pick<TestReport, "result" | "duration" | "skipped" | "failure" | "steps">;

function skip(skipped: Skipped, duration = 0): Ran {
  return { result: "skip", duration, skipped, steps: [] };
}

/** Runs a test, and closes its streams. */
async function runTest(test: Test, target: Target, signal: AbortSignal): Promise<Ran> {
  const began = performance.now();
  const steps: StepReport[] = [];
  let at = "";
  let since = began;
  let runner: StepRunner | undefined;
  const runSteps = async (): Promise<void> => {
    signal.throwIfAborted();
    const wantsWebhook = JSON.stringify(test.steps).includes("webhookUrl");
    runner = new StepRunner(test, target, wantsWebhook ? await target.webhooks.open() : undefined, signal);
    for (const step of test.steps) {
      at = step.id;
      since = performance.now();
      await runner.run(step);
      steps.push({ id: at, result: "pass", duration: performance.now() - since });
    }
    at = "";
    for (const assertion of test.assertions) runner.scope.demand(assertion);
  };
  try {
    await unlessAborted(runSteps(), signal);
    return { result: "pass", duration: performance.now() - began, steps };
  } catch (error) {
    const duration = performance.now() - began;
    if (signal.aborted) return skip(outOfTime, duration);
    if (error instanceof RateLimited) return skip({ reason: error.message, applies: true }, duration);
    const result = failures.some((one) => error instanceof one) ? "fail" : "error";
    if (at !== "") steps.push({ id: at, result, duration: performance.now() - since });
    return { result, duration, failure: failureOf(error, at), steps };
  } finally {
    runner?.scope.end();
  }
}

const outOfTime: Skipped = { reason: "the run exceeded its time limit", applies: true, option: "timeout" };

/** Awaits the promise, but rejects as soon as the signal is aborted. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Maximum length of a text in a failure, in characters. Servers can send texts of any length. */
const maxTextLength = 2_000;

function failureOf(error: unknown, stepId: string): Failure {
  const message = cut(error instanceof Error ? error.message : String(error), maxTextLength);
  const mismatch = error instanceof Failed ? error.mismatch : undefined;
  return {
    message,
    ...defined({
      stepId: stepId || undefined,
      expected: mismatch && cut(mismatch.expected, maxTextLength),
      actual: mismatch && cut(mismatch.actual, maxTextLength),
      path: cut(mismatch?.path ?? "", maxTextLength) || undefined,
    }),
  };
}

/** The server rejects a request because of its rate limit. */
class RateLimited extends Error {}

/** Runs the steps of a test. The caller must call `scope.end()` when the test is over. */
class StepRunner {
  readonly scope: Scope;
  readonly #test: Test;
  readonly #target: Target;
  readonly #inbox: Inbox | undefined;
  readonly #judge: StepJudge;
  readonly #signal: AbortSignal;

  constructor(test: Test, target: Target, inbox: Inbox | undefined, signal: AbortSignal) {
    this.#signal = signal;
    this.scope = new Scope(test, target, inbox);
    this.#test = test;
    this.#target = target;
    this.#inbox = inbox;
    this.#judge = new StepJudge(this.scope, target);
  }

  /** Runs a step. Rejects with the failure of the test, or with any other error if the test itself is invalid. */
  async run(step: Step): Promise<void> {
    if (step.delay > 0) await this.#pause(step.delay);
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
        throw new Error("a server cannot run a client step");
    }
    for (const assertion of step.assertions) this.scope.demand(assertion);
  }

  /** Rejects when the run ends. */
  async #pause(milliseconds: number): Promise<void> {
    await pause(milliseconds, undefined, { signal: this.#signal });
  }

  #headers(credentials: Credentials): Record<string, string> {
    const { headers, otherHeaders, card } = this.#target;
    const extensions = requiredExtensions(card);
    const unknown = (name: string): string => (name === "authorization" ? "Bearer nobody" : "nobody");
    const own: Readonly<Record<Credentials, Readonly<Record<string, string>>>> = {
      caller: headers,
      none: {},
      invalid: Object.fromEntries(Object.keys(headers).map((name) => [name, unknown(name)] as const)),
      other: otherHeaders ?? {},
    };
    return {
      "a2a-version": this.#test.version,
      ...(extensions.length === 0 ? {} : { "a2a-extensions": extensions.join(",") }),
      ...own[credentials],
    };
  }

  /** Replaces the prefixes that request a behavior (ACTS §11) by the agent's own. */
  #inWords(value: Json): Json {
    const { words } = this.#target;
    return words === undefined ? value : inWords(value, this.#test.behaviors, words);
  }

  async #call(step: CallStep): Promise<void> {
    const { operation, repeat } = step;
    const { caller, timeout } = this.#target;
    for (let attempt = 1; ; attempt += 1) {
      const written = this.#inWords(this.scope.resolve(step.params));
      const params = isMap(written) ? completeParams(written) : {};
      const headers = this.#headers(step.credentials);
      for (const [name, value] of Object.entries(step.headers)) {
        if (value === null) delete headers[name];
        else headers[name] = this.scope.text(value);
      }
      const outcome = await this.#unlimited(step, () => caller.call(operation, params, headers, timeout));
      await this.#judge.outcome(step, outcome, streams(operation));
      const response = this.scope.response(step.id);
      if (repeat === undefined || holds(repeat.until, response)) return;
      if (attempt >= repeat.attempts) {
        const mismatch = { path: "", expected: repeat.until, actual: show(response) };
        throw new Failed(`condition not met after ${repeat.attempts} attempts`, mismatch);
      }
      const factor = repeat.backoff === "linear" ? attempt : repeat.backoff === "exponential" ? 2 ** (attempt - 1) : 1;
      await this.#pause(repeat.delay * factor);
    }
  }

  /** Retries a call that the server's rate limit rejects. Throws RateLimited when the waiting time is used up. */
  async #unlimited(step: CallStep | RawStep, ask: () => Promise<Outcome>): Promise<Outcome> {
    const wanted = step.expectError?.status ?? step.expect?.status;
    const expected = wanted !== undefined && check(this.scope.resolve(wanted), 429) === undefined;
    const { patience } = this.#target;
    for (;;) {
      const outcome = await ask();
      if (expected || (outcome.status !== 429 && outcome.error?.code !== "RESOURCE_EXHAUSTED")) return outcome;
      const delay = Math.max(1, Number(outcome.headers["retry-after"]) || 1) * 1000;
      if (delay > patience.left) throw new RateLimited("the server limits the request rate");
      patience.left -= delay;
      await this.#pause(delay);
    }
  }

  async #raw(step: RawStep): Promise<void> {
    const { caller, timeout } = this.#target;
    const body = step.body === undefined ? undefined : this.#inWords(this.scope.resolve(step.body));
    const written = body === undefined ? undefined : JSON.stringify(step.literal ? body : completeBody(body));
    const text = step.bodyRaw ?? written;
    // A raw step sets its own headers: the runner adds credentials, but no version.
    const { "a2a-version": _, ...headers } = this.#headers(step.credentials);
    for (const [name, value] of Object.entries(step.headers)) headers[name.toLowerCase()] = this.scope.text(value);
    const path = this.scope.text(step.path);
    const request = { method: step.method, path, headers, ...defined({ body: text }) };
    const outcome = await this.#unlimited(step, async () => {
      const answer = await caller.raw?.(request, timeout);
      if (answer === undefined) throw new Error("this binding does not support raw requests");
      return answer;
    });
    await this.#judge.outcome(step, outcome, step.expectStream !== undefined);
  }

  async #stream(step: StreamStep): Promise<void> {
    const stream = this.scope.stream(step.stream);
    const timeout = step.expectStream?.timeout ?? this.#target.timeout;
    if (step.read !== undefined) await this.#judge.reached(stream, step.read, timeout);
    else if (!step.disconnect) await this.#judge.ended(stream, timeout);
    if (step.disconnect) stream.live.close();
    this.#judge.stream(step, stream, step.expectStream);
  }

  async #deliveries(step: DeliveriesStep): Promise<void> {
    const inbox = this.#inbox;
    if (inbox === undefined) throw new Error("no step gives the server {{webhookUrl}}");
    const { deliveries } = inbox;
    if (step.none) {
      if (deliveries.length === 0) return;
      const mismatch = { path: "deliveries", expected: "none", actual: show(deliveries) };
      throw new Failed("unexpected delivery", mismatch);
    }
    const until = step.until === undefined ? {} : this.scope.resolve(step.until);
    const { timeout } = this.#target;
    if (!(await inbox.until(() => deliveries.some((one) => check(until, one) === undefined), timeout))) {
      const mismatch = { path: "deliveries", expected: show(until), actual: show(deliveries) };
      throw new Failed(`no matching delivery within ${timeout} ms`, mismatch);
    }
    for (const [at, one] of deliveries.entries()) this.#judge.ask(step.each, one, `deliveries[${at}]`);
    this.scope.keep(step, { response: { deliveries: [...deliveries] } });
  }
}
