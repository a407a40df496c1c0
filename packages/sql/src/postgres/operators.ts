import type { StoreOperators } from "@parley/server/internal/store/index";
import { changeOrders, readActs, readCounts, readOperatorTasks, readOrders } from "../shared/operators.ts";
import { dialect, run } from "./dialect.ts";
import type { Calls } from "./store.ts";
import type { Write } from "./sweep.ts";

/** Reads tasks for operators, and stores their orders. */
export function operatorsOf(calls: Calls, write: Write): StoreOperators {
  return {
    tasks: (query) => calls.steps(() => readOperatorTasks(dialect, query)),
    counts: (limit) => calls.steps(() => readCounts(dialect, limit)),
    orders: () => calls.steps(() => readOrders()),
    change: (change) =>
      calls.run(() =>
        write(async (sql) => {
          // Only one change runs at a time. Readers do not wait.
          if (change.order !== undefined) await sql("LOCK TABLE parley.orders IN SHARE ROW EXCLUSIVE MODE");
          return run(sql, changeOrders(dialect, change));
        }),
      ),
    acts: (query) => calls.steps(() => readActs(dialect, query)),
  };
}
