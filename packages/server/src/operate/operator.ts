import { defined } from "@parley/a2a/internal/base/defined";
import { timeOrderedIds, type Clock, type Ids } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { Audit } from "@parley/a2a/internal/protocol/index";
import type { OperatingHost } from "../engine/shared/operating.ts";
import type { Store, StoreOperators } from "../store/index.ts";
import { Acts } from "./acts.ts";
import type { Operator } from "./port.ts";
import { countTasks, listTasks, nodesOf, pausedAgents, readLog, showTask } from "./read.ts";
import { actOf } from "./views.ts";

export interface OperatorInit {
  readonly store: Store;
  readonly clock: Pick<Clock, "now">;
  readonly host: OperatingHost;
  /** Makes the ids of tasks that continue failed tasks. Default: time-ordered UUIDs (version 7). */
  readonly ids?: Ids;
  readonly audit?: Audit | undefined;
}

/**
 * Creates the operations of operators on a store. The operations do not check permissions.
 *
 * @throws A2AError `UnsupportedOperation` if the store has no `operators`.
 */
export function createOperator({ ids = timeOrderedIds(), ...init }: OperatorInit): Operator {
  const operators = operatorsOf(init.store);
  const deps = { ...init, ids, operators };
  const acts = new Acts(deps);
  return {
    list: (filter) => listTasks(deps, filter),
    show: (agent, taskId) => showTask(deps, agent, taskId),
    log: (agent, taskId, query) => readLog(deps, agent, taskId, query),
    counts: () => countTasks(deps),
    nodes: () => nodesOf(deps),
    paused: () => pausedAgents(deps),
    acts: async ({ limit = 50, before }) => (await operators.acts({ limit, ...defined({ before }) })).map(actOf),
    cancel: (target, context) => acts.cancel(target, context),
    resume: (target, context) => acts.resume(target, context),
    retryStep: (target, context) => acts.retryStep(target, context),
    dropWait: (target, context) => acts.dropWait(target, context),
    pause: (agent, context) => acts.pause(agent, context),
    unpause: (agent, context) => acts.unpause(agent, context),
    drain: (node, context) => acts.drain(node, context),
    undrain: (node, context) => acts.undrain(node, context),
  };
}

/** The `operators` of a store. Throws if the store does not support operators. */
export function operatorsOf({ operators }: Store): StoreOperators {
  if (operators !== undefined) return operators;
  throw new A2AError("UnsupportedOperation", "This store does not support operators: it has no `operators`");
}
