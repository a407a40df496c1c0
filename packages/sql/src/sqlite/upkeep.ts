import type { Upkeep } from "@parley/server/internal/store/index";
import type { KeptTasks } from "../shared/tasks.ts";
import { readContexts, readOwners, readReplies } from "../shared/upkeep.ts";
import { dialect } from "./dialect.ts";
import type { Driver } from "./driver.ts";
import { count, int } from "./rows.ts";
import type { Calls } from "./store.ts";
import { taskOf } from "./sweep.ts";
import { isFree, listsOf, oldest } from "./tidy.ts";
import type { Writer } from "./writer.ts";

/** Deletion and export for operators. */
export function upkeepOf(reader: Driver, writer: Writer, calls: Calls, kept: KeptTasks): Upkeep {
  return {
    owners: (query) => calls.steps(() => readOwners(dialect, query)),
    count: (selection) =>
      calls.readTogether(() =>
        listsOf(reader, selection).reduce(
          (sum, { where, values }) =>
            sum + count(reader.prepare(`SELECT count(*) FROM ${where} ${isFree}`).get(...values)),
          0,
        ),
      ),
    find: (selection, limit) =>
      calls.readTogether(() => oldest(reader, selection, limit).map((row) => taskOf(reader, int(row, 0)).head)),
    remove: (tasks, limit) =>
      calls.run(async () => {
        const removed = await writer.tidy({ tasks, limit });
        kept.forget();
        return removed;
      }),
    contexts: (owner, page) => calls.steps(() => readContexts(dialect, owner, page)),
    replies: (context, page) => calls.steps(() => readReplies(dialect, context, page)),
    forget: (owner, limit) =>
      calls.run(async () => {
        const { deleted, more } = await writer.tidy({ owner, limit });
        kept.forget();
        return { deleted, more };
      }),
    scrub: () => calls.run(() => writer.scrub()),
  };
}
