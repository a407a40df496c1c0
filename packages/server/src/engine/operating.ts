import type { Principal } from "@parley/a2a/internal/protocol/index";
import type { Committer } from "./log/index.ts";
import type { OperatingHost } from "./shared/operating.ts";
import type { EngineSettings } from "./shared/settings.ts";
import type { Supervisor } from "./supervise/index.ts";

interface OperatingDeps {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly supervisor: Supervisor;
  readonly agents: ReadonlyMap<string, unknown>;
}

/** Functions through which operators change the tasks of this engine. */
export function operatingOf({ settings, committer, supervisor, agents }: OperatingDeps): OperatingHost {
  const { lease } = settings;
  const causeOf = (by: Principal | undefined) => (by === undefined ? undefined : { by });
  return {
    get node() {
      return lease.holder;
    },
    append: (item, by) => committer.append(item, undefined, causeOf(by)),
    cancel: (head, { effects, seq, by }) =>
      supervisor.runs.endTask(
        head,
        { state: "TASK_STATE_CANCELED" },
        { effects, ...(seq !== undefined && { seq }), ...causeOf(by) },
      ),
    nudge: () => supervisor.operated(),
    agents: () => [...agents.keys()],
    nodes: () => supervisor.silences(),
    silence: lease.ttl,
  };
}
