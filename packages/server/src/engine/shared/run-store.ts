import { A2AError } from "@parley/a2a/internal/model/index";
import type { Store } from "../../store/index.ts";
import type { EngineSettings } from "./options.ts";

/**
 * The store could not be asked now. That is no fault of the agent, whatever it was about to do: its run is given up, as where
 * nothing can be written, and its task goes on with another one.
 */
class StoreUnavailable extends A2AError {
  constructor(cause: A2AError) {
    const { message, retryAfter } = cause;
    super("Unavailable", message, { cause, ...(retryAfter !== undefined && { retryAfter }) });
  }
}

/** How many causes of an error are looked at. */
const maxCauses = 8;

/** Whether an error is that of the store, also where an agent has thrown another one for it. */
export function isOfStore(error: unknown): boolean {
  let each = error;
  for (let depth = 0; depth < maxCauses && each instanceof Error; depth += 1) {
    if (each instanceof StoreUnavailable) return true;
    each = each.cause;
  }
  return false;
}

/** Whether an error says that the store cannot work now, which is no fault of what was tried. */
export function isOutage(error: unknown): boolean {
  return (error instanceof A2AError && error.code === "Unavailable") || isOfStore(error);
}

/** What a run uses of the store beside its writer. Rejects with `StoreUnavailable` where that cannot be now. */
export type RunStore = Pick<Store, "head" | "features" | "read" | "load" | "conversation" | "once" | "append">;

/** The settings as a run gets them. */
export type RunSettings = Omit<EngineSettings, "store"> & { readonly store: RunStore };

export function runStore(store: Store): RunStore {
  return {
    head: (...of) => store.head(...of).catch(unavailable),
    features: (...of) => store.features(...of).catch(unavailable),
    read: (...of) => store.read(...of).catch(unavailable),
    load: (...of) => store.load(...of).catch(unavailable),
    conversation: (...of) => store.conversation(...of).catch(unavailable),
    once: (...of) => Promise.resolve(store.once(...of)).catch(unavailable),
    append: (...of) => store.append(...of).catch(unavailable),
  };
}

function unavailable(error: unknown): never {
  throw error instanceof A2AError && error.code === "Unavailable" ? new StoreUnavailable(error) : error;
}
