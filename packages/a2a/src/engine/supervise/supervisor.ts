import type { ByteBudget } from "../../protocol/index.ts";
import type { Conversations } from "../conversations.ts";
import type { Committer, LiveLogs } from "../log/index.ts";
import type { EngineSettings, HostedAgent } from "../options.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { Leases } from "./leases.ts";
import { Maintenance } from "./maintenance.ts";
import { Recovery } from "./recovery.ts";
import { Runs } from "./runs.ts";

interface SupervisorInit {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  readonly conversations: Conversations;
  readonly budget: ByteBudget;
  readonly agents: ReadonlyMap<string, HostedAgent>;
}

/** What this process executes, and what keeps it going. */
export interface Supervisor {
  readonly runs: Runs;
  /** Lets turns go on for `grace` milliseconds, stops those that have not ended, and ends all periodic work. */
  stop(grace: number): Promise<void>;
}

/** Starts the periodic work of an engine; the first round begins at once. */
export function startSupervisor({ agents, ...rooms }: SupervisorInit): Supervisor {
  const { settings, committer, liveLogs, budget } = rooms;
  const leaseWatch = new LeaseWatch(settings.clock, settings.lease);
  const runs = new Runs(rooms);
  const leases = new Leases({ settings, committer, runs, watch: leaseWatch });
  const recovery = new Recovery({ settings, committer, agents, runs, budget, leaseWatch });
  const maintenance = new Maintenance({ settings, liveLogs, runs, leases, recovery });
  maintenance.start();
  return {
    runs,
    async stop(grace) {
      await runs.stop(grace);
      maintenance.stop();
    },
  };
}
