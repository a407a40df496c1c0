import type { Clock, Logger } from "@parley/a2a/internal/base/index";
import type { UniversalRequest, UniversalResponse } from "@parley/a2a/internal/protocol/index";
import type { EngineOptions } from "../engine/index.ts";
import type { PublicEndpoint } from "@parley/a2a/internal/transport/router/router";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import { endsWithin } from "@parley/a2a/internal/base/async";

/* The option `health` of a handler: liveness and readiness probes. */

/** Paths of the probes. */
export interface HealthOptions {
  /** Path of the liveness probe: whether the process answers. If it does not, restart it. `false`: none. Default `/healthz`. */
  readonly live?: string | false;
  /**
   * Path of the readiness probe: whether the store can be read and written, and the server is not closing. If it fails (503), send requests
   * to another process. `false`: none. Default `/readyz`.
   */
  readonly ready?: string | false;
}

type StoreCondition = Awaited<ReturnType<NonNullable<EngineOptions["store"]["check"]>>>;
type StoreHearing = NonNullable<StoreCondition["changes"]>;

/** The readiness of a server, for probes. */
export type Readiness = "ready" | "closing" | "unavailable";

/** The answer to a readiness probe. `changes`: how the server is notified of appends by other processes. */
interface ReadinessReport {
  readonly status: Readiness;
  readonly changes?: StoreHearing;
}

/** How long an answer of the store is reused, in milliseconds, because anyone may probe at any rate. */
const fresh = 1_000;

/** Maximum duration of a check, in milliseconds. Probes of orchestrators wait for a second. */
const patience = 900;

/**
 * How long the last answer is valid while the store does not respond, in milliseconds. Otherwise an overloaded store would take all nodes out
 * of the load balancer.
 */
const benefit = 5_000;

/** The values of a store that the answer may contain, because anyone can read it. */
const hearings: ReadonlySet<unknown> = new Set<StoreHearing>(["told", "polled", "unseen"]);

/** A running check. */
interface Checking {
  readonly begun: number;
  readonly end: Promise<void>;
  readonly giveUp: AbortController;
}

/** Checks whether a server can take requests. */
export class ReadinessCheck {
  readonly #store: EngineOptions["store"] | undefined;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #closing = false;
  #isDraining: () => boolean = () => false;
  #checking: Checking | undefined;
  /** The result of the last check. Initially false, without a log line. */
  #works = false;
  #isKnown = false;
  #changes: StoreHearing | undefined;
  #freshUntil = -Infinity;

  /** @param store - `undefined`: no store; the server is then ready until it closes. */
  constructor(store: EngineOptions["store"] | undefined, clock: Clock, logger: Logger) {
    this.#store = store;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Makes the server not ready, because it stops or is about to. */
  close(): void {
    this.#closing = true;
    this.#checking?.giveUp.abort();
  }

  /** Makes the server not ready while an operator drains it. */
  drainWhile(isDraining: () => boolean): void {
    this.#isDraining = isDraining;
  }

  /** The answer of `report()`. */
  async check(): Promise<Readiness> {
    return (await this.report()).status;
  }

  /** Checks the store, unless it was checked a moment ago. Never rejects, and takes less than a second. */
  async report(): Promise<ReadinessReport> {
    if (!this.#closing && this.#clock.elapsed() >= this.#freshUntil) await this.#inTime();
    if (this.#closing || this.#isDraining()) return { status: "closing" };
    if (!this.#works) return { status: "unavailable" };
    return { status: "ready", ...(this.#changes !== undefined && { changes: this.#changes }) };
  }

  /** Does not start another check while a check hangs. */
  async #inTime(): Promise<void> {
    const checking = (this.#checking ??= this.#begin());
    const left = checking.begun + benefit - this.#clock.elapsed();
    if (left > 0) await endsWithin(this.#clock, Math.min(patience, left), checking.end);
    if (this.#checking !== checking || this.#clock.elapsed() - checking.begun < benefit) return;
    checking.giveUp.abort();
    this.#learn("The store does not answer in time");
  }

  #begin(): Checking {
    const giveUp = new AbortController();
    return { begun: this.#clock.elapsed(), giveUp, end: this.#ask(giveUp.signal) };
  }

  async #ask(signal: AbortSignal): Promise<void> {
    try {
      const { writable, reason, changes } = await this.#read(signal);
      this.#changes = hearings.has(changes) ? changes : undefined;
      this.#learn(writable ? undefined : (reason ?? "The store cannot be written"));
    } catch (cause) {
      this.#learn(cause);
    }
    this.#freshUntil = this.#clock.elapsed() + fresh;
    this.#checking = undefined;
  }

  async #read(signal: AbortSignal): Promise<StoreCondition> {
    if (this.#store === undefined) return { writable: true };
    if (this.#store.check !== undefined) return this.#store.check(signal);
    // Reads the head of a task that does not exist, which takes one index read and is never cached.
    await this.#store.head({ agent: "/", owner: "" }, crypto.randomUUID());
    return { writable: true };
  }

  /** Logs a change, not each probe. `cause`: why the store cannot be used. */
  #learn(cause: unknown): void {
    const works = cause === undefined;
    const isNew = this.#isKnown ? works !== this.#works : !works;
    this.#works = works;
    this.#isKnown = true;
    if (!isNew || this.#closing) return;
    if (works) this.#logger.info("Store available again; server is ready");
    else this.#logger.warn("Store unavailable; server is not ready", { cause });
  }
}

/**
 * The endpoints of probes.
 *
 * @throws A2AError `InvalidParams` for a path that is not valid.
 */
export function probesOf(
  option: boolean | HealthOptions | undefined,
  readiness: ReadinessCheck,
): readonly PublicEndpoint[] {
  if (option === undefined || option === false) return [];
  const { live = "/healthz", ready = "/readyz" } = option === true ? {} : option;
  if (live !== false && live === ready) throw cannotServe("health", `has the path ${JSON.stringify(live)} twice`);
  return [
    ...probeAt("live", live, () => answer(200, { status: "ok" })),
    ...probeAt("ready", ready, async () => {
      const report = await readiness.report();
      return answer(report.status === "ready" ? 200 : 503, report);
    }),
  ];
}

function probeAt(
  field: keyof HealthOptions,
  path: string | false,
  probe: () => UniversalResponse | Promise<UniversalResponse>,
): readonly PublicEndpoint[] {
  if (path === false) return [];
  if (typeof path !== "string" || !/^(?:\/(?!\.{1,2}(?:\/|$))[\w\-.~]+)+$/.test(path)) {
    throw cannotServe(`health.${field}`, `is ${JSON.stringify(path)}. It must be a path such as "/healthz", or false`);
  }
  return [
    {
      path,
      name: `The probe health.${field}`,
      open: true,
      answer: async ({ method }: UniversalRequest) => (method === "GET" || method === "HEAD" ? probe() : notAllowed),
    },
  ];
}

/** Reveals nothing else about the server, because anyone can read it. */
function answer(status: number, words: Readonly<Record<string, string>> | ReadinessReport): UniversalResponse {
  return { status, headers: { "content-type": "application/json", ...noStore }, body: JSON.stringify(words) };
}

const noStore = { "cache-control": "no-store" };

const notAllowed: UniversalResponse = { status: 405, headers: { ...noStore, allow: "GET, HEAD" } };
