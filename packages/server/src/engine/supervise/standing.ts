import { orderNames } from "../../store/index.ts";
import { Emitter } from "../shared/collections.ts";
import { notedFor, noteAgents } from "../shared/operating.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { Outage } from "./outage.ts";
import { Poller } from "./polling.ts";

interface StandingDeps {
  readonly settings: Pick<EngineSettings, "clock" | "lease" | "logger" | "pollInterval" | "store">;
  readonly outage: Pick<Outage, "failed">;
  readonly agents: ReadonlyMap<string, unknown>;
}

/**
 * The standing orders of operators, which every process on the store obeys. Turns of a paused agent start and resume in no process. A draining
 * process starts and resumes no turns. The orders are read at startup, and every `pollInterval`.
 */
export class Standing {
  /** Emits when an order was set or withdrawn. */
  readonly changed: Emitter = new Emitter();
  readonly #deps: StandingDeps;
  readonly #poller: Poller;
  #orders: ReadonlySet<string> = new Set();
  #isDraining = false;
  #isRead = false;
  #stopped = false;
  #noted = { agents: "", at: -Infinity };

  constructor(deps: StandingDeps) {
    this.#deps = deps;
    const { clock, store } = deps.settings;
    this.#isRead = store.operators === undefined;
    this.#poller = new Poller({ clock, work: () => this.#poll(), isOver: () => this.#stopped });
  }

  /** Whether this process must not start turns. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Whether the orders were read. Until then, a message waits for `poll()`. */
  get isRead(): boolean {
    return this.#isRead;
  }

  isPaused(agent: string): boolean {
    return this.#orders.size > 0 && this.#orders.has(orderNames.pause(agent));
  }

  /** The given agents without the paused ones. */
  active(agents: Iterable<string>): string[] {
    const all = [...agents];
    return this.#orders.size === 0 ? all : all.filter((agent) => !this.isPaused(agent));
  }

  /** Starts polling. Resolves once the orders were read, or reading them failed. */
  start(background: boolean): Promise<void> {
    if (this.#deps.settings.store.operators === undefined) return Promise.resolve();
    this.#poller.start(background);
    return this.poll();
  }

  stop(): Promise<void> {
    this.#stopped = true;
    return this.#poller.stop();
  }

  /** Reads the orders now. Never rejects. */
  poll(): Promise<void> {
    return this.#deps.settings.store.operators === undefined ? Promise.resolve() : this.#poller.now();
  }

  async #poll(): Promise<void> {
    const { settings, outage } = this.#deps;
    try {
      const found = await settings.store.operators?.orders();
      this.#note(new Set(found?.map(({ name }) => name)));
      await this.#noteAgents();
    } catch (cause) {
      if (!this.#stopped && !(await outage.failed(cause))) {
        settings.logger.error("Failed to read the orders of operators; retrying", { cause });
      }
    }
    this.#isRead = true;
    if (!this.#stopped) this.#poller.after(settings.pollInterval);
  }

  /** If the store counts processes, tells operators at other processes which agents this process runs. */
  async #noteAgents(): Promise<void> {
    const { settings, agents } = this.#deps;
    const { clock, lease, store } = settings;
    const names = [...agents.keys()];
    const noted = { agents: names.join("\n"), at: clock.elapsed() };
    const isKnown = noted.agents === this.#noted.agents && noted.at - this.#noted.at < notedFor / 2;
    if (store.nodes === undefined || isKnown) return;
    await noteAgents(store, lease.holder, names, clock.now());
    this.#noted = noted;
  }

  #note(orders: ReadonlySet<string>): void {
    const before = this.#orders;
    if (orders.size === before.size && [...orders].every((name) => before.has(name))) return;
    const { lease, logger } = this.#deps.settings;
    this.#orders = orders;
    const wasDraining = this.#isDraining;
    this.#isDraining = orders.has(orderNames.drain(lease.holder));
    const changes = {
      given: [...orders].filter((name) => !before.has(name)),
      withdrawn: [...before].filter((name) => !orders.has(name)),
    };
    logger.info("Orders of operators changed", changes);
    if (this.#isDraining !== wasDraining) logger.warn(this.#isDraining ? "Node drains" : "Node drains no longer", {});
    this.changed.emit();
  }
}
