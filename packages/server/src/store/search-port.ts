import type { TaskState } from "@parley/a2a/internal/model/index";
import type { Owner } from "./append.ts";

/** The port of full text search. */

/**
 * Full text search of tasks, which a store may have. What is searched is what `searchTexts` says: the messages of the history, and the
 * artifacts. It is off until it is switched on, and costs nothing then.
 */
export interface TaskSearch {
  /**
   * Switches the index on or off, for every process that shares the store, until somebody switches it again. Resolves when the index has
   * everything that was stored before. From then on each append brings it up to date in its own transaction: the messages of the
   * history at once, and artifacts when their task is interrupted or over. Nothing of the index is kept of a task that was deleted.
   * While it is off, nothing is indexed; when it is switched on again, what is missing is added.
   *
   * @throws A2AError `Unavailable` where the store cannot have an index.
   */
  use(on: boolean): Promise<void>;
  /**
   * Finds tasks of an owner. The best come first, and of equal ones the newest. What is found, and in which order, depends on the tasks of
   * this owner alone.
   *
   * @throws A2AError `Unavailable` while it is off, and until the index has what was stored before.
   */
  find(owner: Owner, query: SearchQuery): Promise<SearchPage>;
}

/** What is looked for in the texts of a task. */
export interface SearchTerm {
  /** Words that come one after another, as `searchWords` gives them. At least one. */
  readonly words: readonly string[];
  /** Whether the last word is the beginning of one. */
  readonly prefix?: boolean;
}

/** Which tasks to find. */
export interface SearchQuery {
  /** Each of these is in a text of the task. From one to `maxSearchTerms`, as `searchTerms` gives them. */
  readonly terms: readonly SearchTerm[];
  /** Only tasks of this conversation. */
  readonly contextId?: string;
  /** Only tasks in this state. */
  readonly state?: TaskState;
  /** Most tasks on the page. */
  readonly limit: number;
  /** How many tasks the pages before had. Default 0. */
  readonly skip?: number;
}

/** A page of tasks that were found. */
export interface SearchPage {
  /** The tasks. */
  readonly hits: readonly SearchHit[];
  /** How many tasks were found on all pages. A store may leave out the oldest ones where there are very many. */
  readonly total: number;
}

/** A task that was found. */
export interface SearchHit {
  /** Its id. */
  readonly taskId: string;
  /** Where the words are, the best texts first. At most three. */
  readonly snippets: readonly SearchSnippet[];
}

/** A part of a text in which words were found. */
export interface SearchSnippet {
  /** The message that has the text. */
  readonly messageId?: string;
  /** The artifact that has it. */
  readonly artifactId?: string;
  /** About 160 characters of the text. */
  readonly text: string;
  /** Where the words are in `text`, in UTF-16 units, in order. */
  readonly marks: readonly { readonly start: number; readonly end: number }[];
}
