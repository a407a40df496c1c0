import { deferred, type Clock, type Logger } from "../base/index.ts";
import type { UniversalRequest, UniversalResponse } from "../protocol/index.ts";
import type { EngineOptions } from "../engine/index.ts";
import type { PublicEndpoint } from "../transport/router/router.ts";
import { cannotServe } from "../transport/server/binding.ts";

/* The option `health` of a handler: what probes ask. */

/** Where probes ask whether a server works. */
export interface HealthOptions {
  /** Path of the probe of liveness: the process answers. Where it does not, restart it. `false`: none. Default `/healthz`. */
  readonly live?: string | false;
  /**
   * Path of the probe of readiness: the store can be read, and the server does not close. Where it fails (503), send requests to another
   * process. `false`: none. Default `/readyz`.
   */
  readonly ready?: string | false;
}

/** Whether a server can take requests, as probes are told. */
export type Readiness = "ready" | "closing" | "unavailable";

/** How long what a read of the store has shown is true for other probes, in milliseconds: anyone may ask, as often as they like. */
const fresh = 1_000;

/** Longest wait for the store, in milliseconds. */
const patience = 5_000;

/** Finds out whether a server can take requests. */
export class ReadinessCheck {
  readonly #store: EngineOptions["store"];
  readonly #clock: Clock;
  readonly #logger: Logger;
  #closing = false;
  #reading: Promise<void> | undefined;
  #known = true;
  #freshUntil = -Infinity;

  constructor(store: EngineOptions["store"], clock: Clock, logger: Logger) {
    this.#store = store;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** The server stops. */
  close(): void {
    this.#closing = true;
  }

  /** Reads the store, unless it was read a moment ago. Never rejects. */
  async check(): Promise<Readiness> {
    if (!this.#closing && this.#clock.elapsed() >= this.#freshUntil)
      await this.#inTime((this.#reading ??= this.#read()));
    if (this.#closing) return "closing";
    return this.#known ? "ready" : "unavailable";
  }

  /** A read that hangs is not begun again. */
  async #inTime(reading: Promise<void>): Promise<void> {
    const late = deferred<void>();
    const clear = this.#clock.after(patience, () => {
      this.#learn(false, "The store takes too long");
      late.resolve();
    });
    await Promise.race([reading, late.promise]);
    clear();
  }

  async #read(): Promise<void> {
    try {
      // Of a task that nobody has: it costs one read of an index, and no cache has it.
      await this.#store.head({ agent: "/", owner: "" }, crypto.randomUUID());
      this.#learn(true);
    } catch (cause) {
      this.#learn(false, cause);
    }
    this.#freshUntil = this.#clock.elapsed() + fresh;
    this.#reading = undefined;
  }

  /** Logs a change, not each probe. */
  #learn(works: boolean, cause?: unknown): void {
    if (works === this.#known) return;
    this.#known = works;
    if (works) this.#logger.info("The store can be read again: the server is ready");
    else this.#logger.warn("The store cannot be read: the server is not ready", { cause });
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
    ...probeAt("live", live, () => answer(200, "ok")),
    ...probeAt("ready", ready, async () => {
      const status = await readiness.check();
      return answer(status === "ready" ? 200 : 503, status);
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

/** Nothing about the server beyond the word: anyone may read it. */
function answer(status: number, word: string): UniversalResponse {
  return { status, headers: { "content-type": "application/json", ...noStore }, body: `{"status":"${word}"}` };
}

const noStore = { "cache-control": "no-store" };

const notAllowed: UniversalResponse = { status: 405, headers: { ...noStore, allow: "GET, HEAD" } };
