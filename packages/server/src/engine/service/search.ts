import { A2AError, hasCode, invalidParams } from "@parley/a2a/internal/model/index";
import type {
  AgentService,
  AnyExtension,
  CallContext,
  FoundTask,
  FoundTasks,
  TaskTextQuery,
} from "@parley/a2a/internal/protocol/index";
import type { SearchHit, TaskSearch } from "../../store/index.ts";
import { maxSearchTerms, maxSearchWords, searchTerms } from "../../store/search.ts";
import type { EngineSettings } from "../shared/settings.ts";
import { hasRoom, type AgentTasks } from "./agent-tasks.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/** How long a search waits until older tasks are indexed, in milliseconds. */
const longestWait = 10_000;

/** Switches the full text search of the store on if an extension of this server needs it, else off. */
export class TaskIndex {
  readonly #settings: Pick<EngineSettings, "clock" | "logger">;
  readonly #search: TaskSearch | undefined;
  readonly #isWanted: boolean;
  #switched: Promise<TaskSearch> | undefined;

  /** @throws A2AError `InvalidParams` if an extension needs search and the store has none. */
  constructor(settings: Pick<EngineSettings, "clock" | "logger" | "store">, extensions: readonly AnyExtension[]) {
    const needs = extensions.find(({ searchesTasks }) => searchesTasks === true);
    const { search } = settings.store;
    if (needs !== undefined && search === undefined) {
      const description = "has no full text search, which the extension needs";
      throw invalidParams(
        [{ field: "store", description }],
        `This cannot be served: store ${description}: ${needs.uri}`,
      );
    }
    this.#settings = settings;
    this.#search = search;
    this.#isWanted = needs !== undefined;
  }

  /** Switches the search on or off. A failure is logged, and the next search retries. */
  start(): void {
    const on = this.#isWanted;
    const begun = on ? this.#switchOn() : this.#search?.use(false);
    begun?.catch((cause: unknown) => {
      this.#settings.logger.error("Failed to switch the full-text search of the store", { on, cause });
    });
  }

  /** Resolves to the search once the index is complete. Rejects with `Unavailable` if this takes too long. */
  async ready(): Promise<TaskSearch> {
    const { clock } = this.#settings;
    let stop = (): void => {};
    const late = new Promise<never>((_resolve, reject) => {
      const message = "The index of the tasks is being made";
      stop = clock.after(longestWait, () => reject(new A2AError("Unavailable", message, { retryAfter: 5 })));
    });
    try {
      return await Promise.race([this.#switched ?? this.#switchOn(), late]);
    } finally {
      stop();
    }
  }

  /** Like `ready()`, after another process has switched the search off. */
  again(): Promise<TaskSearch> {
    this.#switched = undefined;
    return this.ready();
  }

  #switchOn(): Promise<TaskSearch> {
    const search = this.#search;
    if (!this.#isWanted || search === undefined) {
      const cause = new Error("searchTasks() is for extensions with searchesTasks");
      return Promise.reject(new A2AError("InternalError", undefined, { cause }));
    }
    const switched = search.use(true).then(() => search);
    this.#switched = switched;
    // The next search retries.
    switched.catch(() => (this.#switched = undefined));
    return switched;
  }
}

/* Finds the tasks of a caller by their texts, for methods of extensions. Loaded with the first search. */

/** Searches the tasks that ListTasks returns to the caller. `guarded`: the operations with the caller's rights. */
export async function searchTasks(
  tasks: AgentTasks,
  index: TaskIndex,
  guarded: AgentService,
  { text, contextId, status, limit, skip = 0 }: TaskTextQuery,
  context: CallContext,
): Promise<FoundTasks> {
  const terms = searchTerms(text);
  if (terms.length === 0) throw invalidParams([{ field: "text", description: "has no word" }]);
  if (terms.length > maxSearchTerms) {
    const description = `has ${terms.length} words and phrases: at most ${maxSearchTerms} are looked for`;
    throw invalidParams([{ field: "text", description }]);
  }
  if (terms.reduce((sum, { words }) => sum + words.length, 0) > maxSearchWords) {
    throw invalidParams([
      { field: "text", description: `has too many words: at most ${maxSearchWords} are looked for` },
    ]);
  }
  const filters = defined({ contextId, status });
  // A caller who may not list these tasks may not search them either. If tasks are hidden from the caller, the search does not find them.
  const { payload } = await guarded.call("ListTasks", { ...filters, pageSize: 1 }, context);
  if (payload.value.totalSize === 0) return { tasks: [], total: 0 };
  const owner = tasks.ownerOf(context);
  const query = { terms, limit, skip, ...defined({ contextId, state: status }) };
  const page = await found(index, (search) => search.find(owner, query));
  const loaded = await Promise.all(page.hits.map((hit) => loadedTask(tasks, hit, context)));
  return { tasks: loaded.filter((task) => task !== undefined), total: page.total };
}

/** Finds tasks. If another server has switched the search off, switches it on again. */
async function found<T>(index: TaskIndex, find: (search: TaskSearch) => Promise<T>): Promise<T> {
  try {
    return await find(await index.ready());
  } catch (thrown) {
    if (!hasCode(thrown, "Unavailable") || thrown.retryAfter !== undefined) throw thrown;
    return find(await index.again());
  }
}

async function loadedTask(
  tasks: AgentTasks,
  { taskId, snippets }: SearchHit,
  context: CallContext,
): Promise<FoundTask | undefined> {
  const room = hasRoom(context) ? { room: context } : {};
  try {
    const { store } = tasks.settings;
    const snapshot = await store.load(tasks.ownerOf(context), taskId, { history: 0, artifacts: false, ...room });
    return snapshot && { task: snapshot.task, snippets };
  } catch (thrown) {
    // A task whose status exceeds the store's limit is found but cannot be shown.
    if (thrown instanceof A2AError && thrown.code === "UnsupportedOperation") return undefined;
    throw thrown;
  }
}
