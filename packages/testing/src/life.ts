import { type Clock, deferred, type Logger } from "@parley/a2a/internal/base/index";
import type { Agent, AgentOutput, TurnBase } from "@parley/a2a/internal/protocol/index";
import type { Store } from "@parley/server/internal/store/index";
import type { FetchHandler } from "@parley/a2a/internal/transport/server/fetch";
import type { FetchLike } from "@parley/a2a/internal/transport/client/binding";
import type { SteppedClock } from "./fake-clock.ts";

/**
 * One server process: its store, clock, log and agent. When it is killed, all of them stop immediately, as with
 * SIGKILL: calls are never answered, timers never fire, and the agent does not continue after its next `yield` or
 * `await`. No `finally` runs, and nothing more is stored.
 */
export class Life {
  readonly #clock: SteppedClock;
  readonly #timers = new Set<() => void>();
  readonly #killed = deferred<never>();
  #isOver = false;

  constructor(clock: SteppedClock) {
    this.#clock = clock;
    this.#killed.promise.catch(() => undefined);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Rejects when the process is killed. */
  get killed(): Promise<never> {
    return this.#killed.promise;
  }

  kill(): void {
    this.#isOver = true;
    for (const clear of this.#timers) clear();
    this.#timers.clear();
    const cause = Object.assign(new Error("The agent has crashed"), { code: "ECONNRESET" });
    this.#killed.reject(new TypeError("terminated", { cause }));
  }

  /** The store. Calls that are pending when the process is killed never settle. */
  store(store: Store): Store {
    // A frozen store could not be proxied.
    return new Proxy({} as Store, {
      get: (_, name) => {
        const member: unknown = Reflect.get(store, name);
        if (typeof member !== "function") return member;
        return (...args: readonly unknown[]): unknown => {
          if (this.#isOver) return never();
          const answer: unknown = Reflect.apply(member, store, args);
          return answer instanceof Promise ? this.#alive(this.#clock.track(answer)) : answer;
        };
      },
    });
  }

  clock(): Clock {
    return this.#clockBy((ms, run) => this.#clock.after(ms, run));
  }

  #clockBy(after: Clock["after"]): Clock {
    return {
      now: () => this.#clock.now(),
      elapsed: () => this.#clock.elapsed(),
      after: (ms, run) => {
        if (this.#isOver) return () => undefined;
        const clear = after(ms, () => {
          this.#timers.delete(clear);
          run();
        });
        this.#timers.add(clear);
        return () => {
          this.#timers.delete(clear);
          clear();
        };
      },
    };
  }

  logger(logger: Logger): Logger {
    const ifAlive =
      (level: keyof Logger): Logger["info"] =>
      (message, fields) => {
        if (!this.#isOver) logger[level](message, fields);
      };
    return { debug: ifAlive("debug"), info: ifAlive("info"), warn: ifAlive("warn"), error: ifAlive("error") };
  }

  agent(agent: Agent): Agent {
    const clock = this.#clockBy((ms, run) => this.#clock.afterForAgent(ms, run));
    return { ...agent, execute: (turn) => this.#output(agent.execute(withClock(turn, clock))) };
  }

  #output(output: AgentOutput): AgentOutput {
    if (output instanceof Promise) return this.#alive(output);
    if (typeof output !== "object" || !("next" in output)) return output;
    const step = <Result>(run: () => Promise<Result>): Promise<Result> => (this.#isOver ? never() : this.#alive(run()));
    const steps = Object.create(output) as typeof output;
    steps.next = () => step(() => output.next());
    steps.return = (value) => step(() => output.return(value));
    steps.throw = (error) => step(() => output.throw(error));
    return steps;
  }

  /** Awaits a promise. Never settles after the process is killed. */
  async #alive<Value>(work: Promise<Value>): Promise<Value> {
    try {
      return await work;
    } finally {
      if (this.#isOver) await never();
    }
  }
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** The turn with another clock. */
function withClock(turn: TurnBase, clock: Clock): TurnBase {
  return new Proxy(turn, {
    get(target, name) {
      if (name === "clock") return clock;
      // The members use private fields, so read them from the original turn.
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
}

/** A process that answers requests. */
export interface Listening {
  readonly life: Life;
  readonly fetch: FetchHandler;
}

/**
 * A `fetch` within this process: no port, but the same requests, headers, JSON and streams. Without a process, connections are refused; a
 * killed process's connections are reset.
 */
export function inProcessFetch(listening: () => Listening | Error): FetchLike {
  return async (url, init) => {
    const to = listening();
    if (to instanceof Error) throw to;
    const { method, headers, body, signal } = init;
    const request = new Request(url, { method, headers, signal, ...(body !== undefined && { body }) });
    const response = await Promise.race([to.fetch(request), to.life.killed]);
    if (response.body === null) return response;
    const { status } = response;
    return new Response(connected(response.body.getReader(), to.life), { status, headers: response.headers });
  };
}

/** The rejection of `fetch` without a process. */
export function refused(why: string): TypeError {
  return new TypeError("fetch failed", { cause: Object.assign(new Error(why), { code: "ECONNREFUSED" }) });
}

/** A body that fails when its process is killed. */
function connected(reader: ReadableStreamDefaultReader<Uint8Array>, life: Life): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        life.killed.catch((error: unknown) => controller.error(error));
      },
      async pull(controller) {
        const { done, value } = await reader.read();
        if (life.isOver) return;
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
