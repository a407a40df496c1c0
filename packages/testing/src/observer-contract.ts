import { defineAgent } from "@parley/server/internal/agent/index";
import { mapValues, type Logger } from "@parley/a2a/internal/base/index";
import type { Client } from "@parley/a2a/internal/client/index";
import { defined } from "@parley/a2a/internal/base/defined";
import type { A2AError } from "@parley/a2a/internal/model/index";
import {
  observeRequests,
  type Agent,
  type Begun,
  type CallFacts,
  type Gauges,
  type Observation,
  type ObservedAnswer,
  type Observer,
  type Turn,
} from "@parley/a2a/internal/protocol/index";
import type { FetchLike } from "@parley/a2a/internal/transport/client/binding";
import type { ExtensionContractBinding } from "./extension/given.ts";
import { localBindings } from "./in-process.ts";
import { cardOf, connectTo } from "./binding/given.ts";
import { declareCases, type Expect, type Runner } from "./runner.ts";

/** An observer under test. */
export interface ObserverUnderTest {
  /** The observer, for servers and clients. */
  readonly observer: Observer;
  /**
   * Returns the observer's context that is active at the call, such as the id of a span; `undefined` without one. Absent: the observer
   * has no contexts.
   */
  readonly active?: () => unknown;
  /** Releases the observer's resources. */
  close?(): Promise<void>;
}

/** Options of `observerContract()`. */
export interface ObserverContractOptions {
  /** Creates an observer. Each case gets its own. */
  readonly open: () => ObserverUnderTest | Promise<ObserverUnderTest>;
  /** Bindings to test. Default: JSON-RPC and REST, without a network. */
  readonly over?: readonly ExtensionContractBinding[];
}

/**
 * Tests every rule of an observer: it changes nothing and never fails; its context is active only in the code of agents; and its
 * trace continues in the called agents, over each binding.
 *
 * @example
 * ```ts
 * import { describe, it } from "node:test";
 *
 * observerContract({ describe, it }, { open: () => ({ observer: { call: ({ operation }) => console.log(operation) } }) });
 * ```
 */
export function observerContract(runner: Runner, { open, over = localBindings() }: ObserverContractOptions): void {
  for (const binding of over) {
    declareCases(runner, `an observer over ${binding.client.name}`, mapValues(cases, withoutProblems), async () => {
      const suite = new ObserverSuite(await open(), binding);
      return { given: suite, close: () => suite.close() };
    });
  }
}

/** The `traceparent` of a caller. */
const caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

class ObserverSuite {
  readonly given: ObserverUnderTest;
  /** Warnings of servers and clients. */
  readonly lines: string[] = [];
  /** `traceparent` of each request from a client. */
  readonly sent: (string | undefined)[] = [];
  readonly gauges: Gauges[] = [];
  /** The calls, turns, steps and delegations that the observer received. */
  readonly told: string[] = [];
  readonly calls: { readonly facts: CallFacts; readonly answers: ObservedAnswer[] }[] = [];
  readonly #logger: Logger;
  readonly #binding: ExtensionContractBinding;
  readonly #closing: (() => Promise<void>)[] = [];

  constructor(given: ObserverUnderTest, binding: ExtensionContractBinding) {
    this.given = given;
    this.#binding = binding;
    const line = (message: string): void => void this.lines.push(message);
    this.#logger = { debug() {}, info() {}, warn: line, error: line };
  }

  /** Serves an agent with the observer. Returns a client with it. */
  async serve(onMessage: (turn: Turn) => ReturnType<Agent["execute"]>): Promise<Client> {
    const agent = defineAgent({ name: "Observed", description: "Observed", version: "1", skills: [], onMessage });
    const { observer } = this.given;
    const observed = this.#beside(observer);
    const logger = this.#logger;
    const server = await this.#binding.serve(agent, { observer: observed, logger });
    this.#closing.push(() => server.close());
    const { client } = this.#binding;
    const fetch: FetchLike = (url, init) => {
      this.sent.push(new Headers(init.headers).get("traceparent") ?? undefined);
      return (server.fetch ?? globalThis.fetch)(url, init);
    };
    const interceptors = [observeRequests(observer, logger)];
    return connectTo(client, cardOf(server), { fetch, logger, observer, interceptors });
  }

  async close(): Promise<void> {
    for (const close of this.#closing) await close();
    await this.given.close?.();
  }

  /** Wraps the observer under test, and records its calls in `told`. */
  #beside(observer: Observer): Observer {
    const noting = (begun: Begun, line: string): Begun => {
      this.told.push(line);
      const [what = ""] = line.split(" ");
      const end = (error?: A2AError): void => {
        if (what === "step" || what === "delegation") this.told.push(`${what} ${error?.code ?? "ends"}`);
        if (typeof begun === "function") begun(error);
        else begun?.end?.(error);
      };
      return typeof begun === "object" ? replacing(begun, { end }) : { end };
    };
    return {
      ...observer,
      gauges: (gauges) => {
        this.gauges.push(gauges);
        return observer.gauges?.(gauges);
      },
      call: (call) => {
        const { taskId, contextId, messageId, referenceTaskIds, tenant } = call;
        const facts = defined({ taskId, contextId, messageId, referenceTaskIds, tenant });
        const answers: ObservedAnswer[] = [];
        this.calls.push({ facts, answers });
        const begun = noting(observer.call?.(call), `call ${call.operation}`);
        const inner = typeof begun === "object" ? begun : {};
        const answered = (answer: ObservedAnswer): void => {
          answers.push(answer);
          inner.answered?.(answer);
        };
        return replacing(inner, { answered });
      },
      turn: (turn) => {
        const { card, attempt, message } = turn;
        const line = `turn ${turn.turn}/${attempt} of ${card.name} for ${message.parts[0]?.text ?? ""}`;
        return noting(observer.turn?.(turn), line);
      },
      step: (step) => noting(observer.step?.(step), `step ${step.name}`),
      delegation: (delegation) => noting(observer.delegation?.(delegation), `delegation to ${delegation.name}`),
    };
  }
}

type Case = (suite: ObserverSuite, expect: Expect) => Promise<void>;

const cases: Readonly<Record<string, Case>> = {
  "does not change answers, errors or streams": async (suite, expect) => {
    const client = await suite.serve(async function* (turn) {
      if (turn.text === "hello") return turn.reply("Hello");
      if (turn.text === "throw") throw new Error("It is broken");
      yield turn.artifact({ parts: [{ text: "done" }] });
      return undefined;
    });
    expect((await client.sendMessage("hello")).message?.parts[0]?.text).toEqual("Hello");
    const states: unknown[] = [];
    for await (const { statusUpdate } of client.sendStreamingMessage("work")) states.push(statusUpdate?.status.state);
    expect(states.at(-1)).toEqual("TASK_STATE_COMPLETED");
    expect((await client.sendMessage("throw")).task?.status.state).toEqual("TASK_STATE_FAILED");
    // The line of the agent's own error.
    expect(suite.lines.splice(0)).toEqual(["A task failed"]);
    expect(await client.getTask("unknown").catch((error: { code?: string }) => error.code)).toEqual("TaskNotFound");
  },

  "has one context for each turn, active in the agent, its steps and its calls": async (suite, expect) => {
    const { active } = suite.given;
    const seen = new Map<string, unknown[]>();
    const client = await suite.serve(async function* (turn) {
      const note = (): void => void seen.set(turn.text, [...(seen.get(turn.text) ?? []), active?.()]);
      note();
      yield turn.working("Begins");
      note();
      await turn.step("step", async () => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        note();
      });
      yield turn.artifact({ parts: [{ text: "done" }] });
      note();
    });
    await Promise.all([client.sendMessage("one"), client.sendMessage("two")]);
    const [one = [], two = []] = ["one", "two"].map((text) => seen.get(text));
    expect([one.length, two.length]).toEqual([4, 4]);
    if (active === undefined) return;
    for (const [first, second, inStep, last] of [one, two]) {
      expect([first === undefined, second === first, last === first]).toEqual([false, true, true]);
      // A step may have its own context.
      expect(suite.given.observer.step === undefined ? inStep === first : inStep !== undefined).toEqual(true);
    }
    expect(one[0] === two[0]).toEqual(false);
    expect(active()).toEqual(undefined);
  },

  "continues the caller's trace and propagates it to called agents": async (suite, expect) => {
    const traces: (string | undefined)[] = [];
    const inner = await suite.serve(async function* (turn) {
      traces.push(turn.call.trace);
      yield turn.artifact({ parts: [{ text: "inner" }] });
    });
    const outer = await suite.serve(async function* (turn) {
      traces.push(turn.call.trace);
      yield* turn.delegate(inner, "Go");
    });
    const { task } = await outer.sendMessage("Go", { trace: caller });
    expect(task?.status.state).toEqual("TASK_STATE_COMPLETED");
    expect(traces.length).toEqual(2);
    for (const trace of [...traces, ...suite.sent]) expect(traceIdOf(trace)).toEqual(traceIdOf(caller));
    expect(suite.told).toEqual([
      "call SendMessage",
      "turn 1/1 of Observed for Go",
      "delegation to Observed",
      "call SendStreamingMessage",
      "turn 1/1 of Observed for Go",
      "delegation ends",
    ]);
  },

  "receives each call with the ids that it names and its result": async (suite, expect) => {
    const client = await suite.serve(async function* (turn) {
      yield turn.artifact({ artifactId: "a", parts: [{ text: "0" }], open: true });
      for (let at = 1; at < 5; at += 1) yield turn.append("a", [{ text: String(at) }]);
    });
    const message = { messageId: "m1", contextId: "c1", parts: [{ text: "Go" }], referenceTaskIds: ["t0"] };
    const { task } = await client.sendMessage(message);
    const [sent] = suite.calls;
    expect(sent?.facts).toEqual({ messageId: "m1", contextId: "c1", referenceTaskIds: ["t0"] });
    expect(sent?.answers).toEqual([{ events: 1, taskId: task?.id, contextId: "c1", state: "TASK_STATE_COMPLETED" }]);
    let events = 0;
    for await (const event of client.sendStreamingMessage("stream")) events += Object.keys(event).length;
    const [, streamed] = suite.calls;
    expect(streamed?.answers.reduce((sum, answer) => sum + answer.events, 0)).toEqual(events);
    expect(streamed?.answers.at(-1)?.state).toEqual("TASK_STATE_COMPLETED");
    await client.getTask(task?.id ?? "");
    expect(suite.calls[2]?.facts).toEqual({ taskId: task?.id });
  },

  "receives each step once": async (suite, expect) => {
    const client = await suite.serve(async function* (turn) {
      await turn.step("book", async () => undefined);
      await turn
        .step("pay", async () => {
          throw new Error("It is broken");
        })
        .catch(() => undefined);
      yield turn.artifact({ parts: [{ text: "done" }] });
    });
    await client.sendMessage("Go");
    const steps = suite.told.filter((line) => line.startsWith("step"));
    expect(steps).toEqual(["step book", "step ends", "step pay", "step InternalError"]);
  },

  "reads the gauges of a server until it closes": async (suite, expect) => {
    const client = await suite.serve((turn) => turn.reply("Hello"));
    await client.sendMessage("hello");
    expect(suite.gauges.length).toEqual(1);
    const [gauges] = suite.gauges;
    const { activeRuns, restingRuns } = gauges?.process() ?? {};
    expect([activeRuns, restingRuns]).toEqual([0, 0]);
    const { queueAgeMs: _, ...stored } = (await gauges?.store()) ?? {};
    expect(stored).toEqual({ queuedTasks: 0, waitingTasks: 0, dueWebhooks: 0, webhookDelayMs: 0, suspendedTasks: 0 });
  },
};

/** Fails the case if there are log entries, because the server logs an observer's errors. */
function withoutProblems(body: Case): Case {
  return async (suite, expect) => {
    await body(suite, expect);
    expect(suite.lines).toEqual([]);
  };
}

function traceIdOf(trace: string | undefined): string | undefined {
  return trace?.split("-")[1];
}

/** Replaces some members of an observation. Uses a proxy, because the methods of a class instance cannot be spread. */
function replacing(observation: Observation, members: Partial<Observation>): Observation {
  return new Proxy(observation, {
    get(target, name): unknown {
      const member: unknown = Reflect.get(name in members ? members : target, name);
      // A method that uses private fields works only on its own object.
      return typeof member === "function"
        ? (...given: unknown[]): unknown => Reflect.apply(member, target, given)
        : member;
    },
  });
}
