import type { AppendOutcome } from "../../store/index.ts";

/** Why a run may write no more, without having come to an end itself. */
export type Loss = "canceled" | "fenced" | "store" | "shutdown";

/** A cancel from another process raises the fence too: how the task stands tells it from a lease that was lost. */
export function lossOf({ reason, head }: Extract<AppendOutcome, { readonly ok: false }>): Loss {
  const canceled = head === undefined ? reason === "terminal" : head.state === "TASK_STATE_CANCELED";
  return canceled ? "canceled" : "fenced";
}
