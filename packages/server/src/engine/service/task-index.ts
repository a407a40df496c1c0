import { A2AError, invalidParams } from "@parley/a2a/internal/model/index";
import type { AnyExtension } from "@parley/a2a/internal/protocol/index";
import type { TaskSearch } from "../../store/index.ts";
import type { EngineSettings } from "../shared/settings.ts";

/** How long a search waits for the index of what was stored before, in milliseconds. */
const longestWait = 10_000;

/** The full text search of the store: on while an extension of this server wants it, and else off. */
export class TaskIndex {
  readonly #settings: Pick<EngineSettings, "clock" | "logger">;
  readonly #search: TaskSearch | undefined;
  readonly #isWanted: boolean;
  #switched: Promise<TaskSearch> | undefined;

  /** @throws A2AError `InvalidParams` where an extension needs what the store does not have. */
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

  /** Switches the search on or off. A failure is a line in the log, and a later search tries again. */
  start(): void {
    const on = this.#isWanted;
    const begun = on ? this.#switchOn() : this.#search?.use(false);
    begun?.catch((cause: unknown) => {
      this.#settings.logger.error("The full text search of the store could not be switched", { on, cause });
    });
  }

  /** The search, once its index has everything. Rejects as `Unavailable` where that takes long. */
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

  /** The same after somebody else has switched it off. */
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
    // The next search tries again.
    switched.catch(() => (this.#switched = undefined));
    return switched;
  }
}
