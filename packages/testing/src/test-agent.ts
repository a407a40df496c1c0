import { type Client, connect, type ConnectOptions } from "@parley/a2a/internal/client/index";
import { createHandler, type Handler, type HandlerOptions } from "@parley/server/internal/handler";
import { A2AError, type JsonValue } from "@parley/a2a/internal/model/index";
import { type Agent, anonymous, type AnyExtension, type Principal } from "@parley/a2a/internal/protocol/index";
import { memoryStore, type Store } from "@parley/server/internal/store/index";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import type { Authenticator } from "@parley/a2a/internal/auth/index";
import type { LogFields, Logger } from "@parley/a2a/internal/base/index";
import { SteppedClock, type TestClock } from "./fake-clock.ts";
import { inProcessFetch, Life, type Listening, refused } from "./life.ts";

/** Options of `testAgent()`: the options of `createHandler()`, all optional. */
export interface TestAgentOptions extends Partial<Omit<HandlerOptions, "clock">> {
  /** The store of its tasks, which survives crashes. `close()` does not close a given store. Default: in memory. */
  readonly store?: Store;
  /** The clock of another agent under test, to share it. Default: a new clock. */
  readonly clock?: TestClock;
}

/** The symbol of `await using`, if the compiler knows it. */
type AsyncDispose = typeof Symbol extends { readonly asyncDispose: infer Key extends symbol } ? Key : never;

/** An agent under test, served in this process without a port. */
export type TestAgent = AgentUnderTest & Disposal;

/** `await using agent = await testAgent(…)` calls `close()`, if the compiler knows it. */
type Disposal = { readonly [Key in AsyncDispose]: () => Promise<void> };

/** Controls of an agent under test. */
export interface AgentUnderTest {
  /** An anonymous client. */
  readonly client: Client;
  /** The clock of the agent's server. It does not advance until moved. */
  readonly clock: TestClock;
  /** The store of its tasks. */
  readonly store: Store;
  /** The log of its server, oldest first. It shows why an agent failed, which clients do not learn. */
  readonly logs: readonly LogLine[];
  /** Warnings and errors of `logs` as text, with stacks. Empty after a successful test. */
  readonly problems: readonly string[];
  /**
   * A client of another caller. A string names a caller that satisfies all security requirements of the card; a
   * principal is used unchanged, with its `scopes` and `schemes`.
   */
  as(caller: string | Principal): Promise<Client>;
  /** A client with other options, such as headers for the `authenticator`, or another version of the protocol. */
  connect<E extends string | AnyExtension = string>(
    options?: Omit<ConnectOptions<E>, "fetch">,
  ): Promise<Client<Extract<E, AnyExtension>>>;
  /**
   * Signals an external event to a task, like `signal` of the server.
   *
   * @throws A2AError like `signal` of the server; `Unavailable` while no process runs.
   */
  signal(taskId: string, name: string, data?: JsonValue, options?: Parameters<Handler["signal"]>[3]): Promise<void>;
  /**
   * Kills the agent's process like SIGKILL: stored data stays, everything else is lost, no `finally` runs, and
   * connections are reset. The agent's code stops at its next `yield`: JavaScript in between cannot be stopped.
   */
  crash(): Promise<void>;
  /**
   * Starts a process on the same store. After a crash, first advances the clock until the leases of lost tasks have expired
   * (`lease.ttl`, 30 s by default), so that the process takes them over immediately. Shuts a running process down first, as in a
   * deployment. Clients stay connected.
   *
   * @param agent - The agent of the new process. Default: the same agent.
   */
  restart(agent?: Agent): Promise<void>;
  /** Shuts the process down. Pending client calls are aborted. */
  close(): Promise<void>;
}

/**
 * Serves an agent for a test, in this process and without a port. Uses the real server and client, so that the
 * test covers the wire format. Works with any test runner. Call `close()` at the end; an open agent does not keep the process alive.
 *
 * @throws A2AError `InvalidParams` for an invalid option.
 *
 * @example
 * ```ts
 * const { client, crash, restart, close } = await testAgent(agent, { store: memoryStore() });
 * for await (const event of client.sendStreamingMessage("Go")) {
 *   if (event.artifactUpdate !== undefined) break;
 * }
 * await crash();
 * await restart();
 * const { tasks } = await client.listTasks();
 * console.log((await client.waitFor(tasks[0]!)).status.state);
 * await close();
 * ```
 */
export async function testAgent(agent: Agent, options: TestAgentOptions = {}): Promise<TestAgent> {
  const clock = options.clock ?? new SteppedClock();
  if (!(clock instanceof SteppedClock)) throw cannotServe("clock", "must be the clock of another agent under test");
  const store = options.store ?? memoryStore();
  const lines: LogLine[] = [];
  const server = new Server(agent, { ...options, clock, store }, lines);
  server.start();
  const connectBy = <E extends string | AnyExtension = string>(
    more: Omit<ConnectOptions<E>, "fetch"> = {},
  ): Promise<Client<Extract<E, AnyExtension>>> =>
    connect<E>(server.url, {
      ...clientOptions,
      version: server.version,
      ...more,
      fetch: inProcessFetch(() => server.listening),
    });
  const under: AgentUnderTest = {
    client: await connectBy(),
    clock,
    store,
    logs: lines,
    get problems() {
      return problemsIn(lines);
    },
    as: (caller) => connectBy({ headers: { [callerHeader]: server.callers.add(caller, options.authenticator) } }),
    connect: connectBy,
    signal: (...event) => server.signal(...event),
    async crash() {
      server.crash();
      await clock.settle();
    },
    async restart(next = agent) {
      await server.stop(refused("The agent restarts"));
      if (server.hasCrashed) await clock.advance(options.lease?.ttl ?? defaultTtl);
      server.start(next);
      await clock.settle();
    },
    async close() {
      // Not a network error, which clients would retry.
      await server.stop(new A2AError("Aborted", "The agent under test was closed"));
      if (options.store === undefined) await store.close();
    },
  };
  const { asyncDispose } = Symbol as { readonly asyncDispose?: symbol };
  const disposal: unknown = asyncDispose === undefined ? {} : { [asyncDispose]: under.close };
  return Object.assign(under, disposal as Disposal);
}

const defaultTtl = 30_000;

/**
 * A client in the same process needs no timeouts, and reconnects immediately. Its delays use real time: a test starts a
 * process with `restart()`, not by moving the clock.
 */
const clientOptions: Omit<ConnectOptions, "extensions"> = {
  connectTimeout: false,
  idleTimeout: false,
  retry: { budget: 3_000, minDelay: 5, maxDelay: 500 },
  reconnect: { budget: 5_000, minDelay: 5, maxDelay: 500 },
};

type ServerOptions = TestAgentOptions & { readonly clock: SteppedClock; readonly store: Store };

/** Successive processes of a server. */
class Server {
  readonly callers: Callers;
  hasCrashed = false;
  readonly #options: ServerOptions;
  readonly #lines: LogLine[];
  #agent: Agent;
  #running: (Listening & Pick<Handler, "close" | "signal">) | undefined;
  /** The error of connections while no process runs. */
  #refusal = new Error("The agent was not started");

  constructor(agent: Agent, options: ServerOptions, lines: LogLine[]) {
    this.#agent = agent;
    this.#options = options;
    this.#lines = lines;
    this.callers = new Callers(agent);
  }

  get url(): string {
    return this.#options.publicUrl ?? "http://localhost";
  }

  get version(): string {
    return this.#options.versions?.[0] ?? "1.0";
  }

  get listening(): Listening | Error {
    return this.#running ?? this.#refusal;
  }

  start(agent: Agent = this.#agent): void {
    const { clock, store, logger, authenticator, ...rest } = this.#options;
    const life = new Life(clock);
    const handler = createHandler(life.agent(agent), {
      ...rest,
      publicUrl: this.url,
      authenticator: this.callers.authenticator(authenticator),
      store: life.store(store),
      clock: life.clock(),
      logger: life.logger(recordingLogger(this.#lines, logger)),
    });
    this.#agent = agent;
    this.#running = { life, fetch: handler.fetch, close: handler.close, signal: handler.signal };
    this.hasCrashed = false;
  }

  async signal(...event: Parameters<Handler["signal"]>): Promise<void> {
    if (this.#running === undefined) throw new A2AError("Unavailable", "The agent is not running");
    await this.#running.signal(...event);
  }

  crash(): void {
    if (this.#running === undefined) throw new A2AError("InvalidRequest", "The agent is not running; call restart()");
    this.#running.life.kill();
    this.#running = undefined;
    this.#refusal = refused("The agent has crashed; call restart()");
    this.hasCrashed = true;
  }

  async stop(refusal: Error): Promise<void> {
    const stopped = this.#running;
    this.#running = undefined;
    this.#refusal = refusal;
    await stopped?.close();
  }
}

/** Header that names a test caller. Only the server under test knows it. */
const callerHeader = "x-test-caller";

/** Test callers, in addition to callers of the server's own authenticator. */
class Callers {
  readonly #principals = new Map<string, Principal>();
  readonly #agent: Agent;

  constructor(agent: Agent) {
    this.#agent = agent;
  }

  /** The header value for a caller. A name alone satisfies all security requirements of the card. */
  add(caller: string | Principal, own: Authenticator | undefined): string {
    const principal = typeof caller === "string" ? { subject: caller, schemes: this.#everyScheme(own) } : caller;
    const id = `caller-${this.#principals.size + 1}`;
    this.#principals.set(id, principal);
    return id;
  }

  /** Authenticates test callers, and passes all other requests to `own`. */
  authenticator(own: Authenticator | undefined): Authenticator {
    return {
      securitySchemes: { ...this.#agent.securitySchemes, ...own?.securitySchemes },
      securityRequirements: own?.securityRequirements ?? [],
      ...(own?.resource !== undefined && { resource: own.resource }),
      ...(own?.subjectsOf !== undefined && { subjectsOf: own.subjectsOf }),
      ...(own?.challenges !== undefined && { challenges: (...asked) => own.challenges?.(...asked) ?? {} }),
      authenticate: (request, place) => {
        const principal = this.#principals.get(request.header(callerHeader) ?? "");
        return principal ?? (own === undefined ? anonymous : own.authenticate(request, place));
      },
    };
  }

  #everyScheme(own: Authenticator | undefined): Readonly<Record<string, readonly string[]>> {
    const { securityRequirements = own?.securityRequirements ?? [], skills } = this.#agent;
    const all = [...securityRequirements, ...skills.flatMap((skill) => skill.securityRequirements ?? [])];
    const schemes: Record<string, readonly string[]> = {};
    for (const requirement of all) {
      for (const [name, { list = [] }] of Object.entries(requirement.schemes ?? {}))
        schemes[name] = [...new Set([...(schemes[name] ?? []), ...list])];
    }
    return schemes;
  }
}

/** A log entry of the server under test. */
export interface LogLine {
  /** Severity. */
  readonly level: "debug" | "info" | "warn" | "error";
  /** The event. */
  readonly message: string;
  /** Its details. `cause` is the error, if any. */
  readonly fields: LogFields;
}

/** A logger that records its entries in `lines`, and forwards them to `next`. */
function recordingLogger(lines: LogLine[], next: Logger | undefined): Logger {
  const at =
    (level: LogLine["level"]) =>
    (message: string, fields: LogFields = {}): void => {
      lines.push({ level, message, fields });
      next?.[level](message, fields);
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** Warnings and errors as text, with the stacks of their causes. */
function problemsIn(lines: readonly LogLine[]): readonly string[] {
  return lines.filter(({ level }) => level === "warn" || level === "error").map(toText);
}

function toText({ level, message, fields }: LogLine): string {
  const { cause, ...rest } = fields;
  const details = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `\n  ${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return `${level}: ${message}${details.join("")}${causes(cause)}`;
}

function causes(cause: unknown): string {
  const texts: string[] = [];
  for (let each = cause; each instanceof Error && texts.length < 10; each = each.cause)
    texts.push(`\n${each.stack ?? `${each.name}: ${each.message}`}`);
  if (cause !== undefined && texts.length === 0) texts.push(`\n${JSON.stringify(cause)}`);
  return texts.join("");
}
