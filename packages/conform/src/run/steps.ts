import { setTimeout as pause } from "node:timers/promises";
import { defined } from "@parley/a2a/internal/base/defined";
import type {
  CallStep,
  Credentials,
  DeliveriesStep,
  Json,
  JsonMap,
  RawStep,
  Step,
  StreamStep,
  Test,
} from "../acts/format.ts";
import { completeBody, completeParams, holds, inWords } from "../acts/values.ts";
import { streams, type Outcome } from "../call/caller.ts";
import type { Inbox } from "../call/webhooks.ts";
import { check, Failed, show } from "../judge/assert.ts";
import { StepJudge } from "./judge-step.ts";
import { Scope } from "./scope.ts";
import { requiredExtensions, type Target } from "./target.ts";

/** The server refuses a request because of its rate limit. */
export class RateLimited extends Error {}

/** Runs the steps of one test, one after the other. Whoever makes it calls `scope.end()` when the test is over. */
export class StepRunner {
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

  /** Runs a step. Rejects with what makes the test fail, or with another error where the test itself is wrong. */
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
        throw new Error("a server cannot be asked how a client parses");
    }
    for (const assertion of step.assertions) this.scope.demand(assertion);
  }

  /** Waits; rejects when the run ends. */
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

  /** Behaviours of the test in the agent's own words, where it has other words for them. */
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
      const outcome = await this.#unlimited(step, () => caller.call(operation, params, headers, timeout));
      await this.#judge.outcome(step, outcome, streams(operation));
      const response = this.scope.response(step.id);
      if (repeat === undefined || holds(repeat.until, response)) return;
      if (attempt >= repeat.attempts) {
        const mismatch = { path: "", expected: repeat.until, actual: show(response) };
        throw new Failed(`not so after ${repeat.attempts} attempts`, mismatch);
      }
      const factor = repeat.backoff === "linear" ? attempt : repeat.backoff === "exponential" ? 2 ** (attempt - 1) : 1;
      await this.#pause(repeat.delay * factor);
    }
  }

  /**
   * Repeats a call that the server's rate limit refuses, while there is time left to wait.
   *
   * @throws RateLimited after that: a rate limit says nothing about conformance.
   */
  async #unlimited(step: CallStep | RawStep, ask: () => Promise<Outcome>): Promise<Outcome> {
    const wanted = step.expectError?.status ?? step.expect?.status;
    const expected = wanted !== undefined && check(this.scope.resolve(wanted), 429) === undefined;
    const { patience } = this.#target;
    for (;;) {
      const outcome = await ask();
      if (expected || (outcome.status !== 429 && outcome.error?.code !== "RESOURCE_EXHAUSTED")) return outcome;
      const delay = Math.max(1, Number(outcome.headers["retry-after"]) || 1) * 1000;
      if (delay > patience.left) throw new RateLimited("the server limits the rate of requests");
      patience.left -= delay;
      await this.#pause(delay);
    }
  }

  async #raw(step: RawStep): Promise<void> {
    const { caller, timeout } = this.#target;
    const body = step.body === undefined ? undefined : this.#inWords(this.scope.resolve(step.body));
    const written = body === undefined ? undefined : JSON.stringify(step.literal ? body : completeBody(body));
    const text = step.bodyRaw ?? written;
    // A raw step writes its headers itself: the runner adds credentials, and no version.
    const { "a2a-version": _, ...headers } = this.#headers(step.credentials);
    for (const [name, value] of Object.entries(step.headers)) headers[name.toLowerCase()] = this.scope.text(value);
    const path = this.scope.text(step.path);
    const request = { method: step.method, path, headers, ...defined({ body: text }) };
    const outcome = await this.#unlimited(step, async () => {
      const answer = await caller.raw?.(request, timeout);
      if (answer === undefined) throw new Error("this binding has no raw requests");
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
    for (const [at, one] of deliveries.entries()) this.#judge.ask(step.each, one, `deliveries[${at}]`);
    this.scope.keep(step, { response: { deliveries: [...deliveries] } });
  }
}
