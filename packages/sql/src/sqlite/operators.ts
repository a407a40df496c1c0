import type { StoreOperators } from "@parley/server/internal/store/index";
import { readActs, readCounts, readOperatorTasks, readOrders } from "../shared/operators.ts";
import { dialect } from "./dialect.ts";
import type { Calls } from "./store.ts";
import type { Writer } from "./writer.ts";

/** Reads tasks for operators, and stores their orders. */
export function operatorsOf(writer: Pick<Writer, "operate">, calls: Calls): StoreOperators {
  return {
    tasks: (query) => calls.steps(() => readOperatorTasks(dialect, query)),
    counts: (limit) => calls.steps(() => readCounts(dialect, limit)),
    orders: () => calls.steps(() => readOrders()),
    change: (change) => calls.run(() => writer.operate(change)),
    acts: (query) => calls.steps(() => readActs(dialect, query)),
  };
}
