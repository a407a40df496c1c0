import type { EngineSettings, HostedAgent } from "../options.ts";

/** How many agents are named in the log. */
const mostNamed = 20;

/** Says once of each agent that is not hosted here that its lost tasks wait. */
export class StrandedAgents {
  readonly #settings: Pick<EngineSettings, "store" | "logger">;
  readonly #agents: ReadonlyMap<string, HostedAgent>;
  readonly #named = new Set<string>();

  constructor(settings: Pick<EngineSettings, "store" | "logger">, agents: ReadonlyMap<string, HostedAgent>) {
    this.#settings = settings;
    this.#agents = agents;
  }

  /** `now`: wall time by which a lease has run out. */
  async report(now: number): Promise<void> {
    if (this.#named.size >= mostNamed) return;
    const { store, logger } = this.#settings;
    const known = [...this.#agents.keys(), ...this.#named];
    for (const { agent, tasks } of await store.stranded({ now, agents: known, limit: mostNamed })) {
      this.#named.add(agent);
      logger.warn("Lost tasks wait for an agent that is not hosted here", { agent, tasks });
    }
  }
}
