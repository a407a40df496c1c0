/**
 * The Task Search extension: full text search in one's own tasks.
 * @packageDocumentation
 */

import {
  invalidParams,
  jsonHash,
  type Task,
  taskSchema,
  type TaskState,
  taskStateSchema,
} from "@parley/a2a/internal/model/index";
import {
  filled,
  id,
  integer,
  list,
  none,
  nothing,
  object,
  optional,
  required,
  satisfying,
  type Schema,
  string,
} from "@parley/a2a/internal/model/schema";
import type {
  EventReads,
  ExtensionCall,
  ExtensionMethod,
  ExtensionTypes,
  TaskSnippet,
  TurnReads,
} from "@parley/a2a/internal/protocol/index";
import { type DefinedExtension, defineExtension, extensionMethod } from "@parley/a2a/internal/extensions/index";
import { standardSchema } from "@parley/a2a/internal/extensions/schemas";

/** URI of the extension. */
export const taskSearchUri = "urn:parley:extension:task-search:v1";

/** A request of `tasks/search`. */
export interface TaskSearchRequest {
  /** Words, phrases in quotes, and beginnings of words, which end in `*`: from 1 to 1,000 characters. All of them have to be in the task. */
  readonly text: string;
  /** Only tasks of this conversation. */
  readonly contextId?: string;
  /** Only tasks in this state. */
  readonly status?: TaskState;
  /** Most tasks on the page, from 1 to 100. Default 20. */
  readonly pageSize?: number;
  /** `nextPageToken` of the page before. */
  readonly pageToken?: string;
}

/** A response of `tasks/search`. */
export interface TaskSearchResponse {
  /** The tasks, the best first. */
  readonly results: readonly TaskSearchResult[];
  /** The token of the next page. Empty on the last one. */
  readonly nextPageToken: string;
  /** How many tasks a page has at most. */
  readonly pageSize: number;
  /** How many tasks were found on all pages. */
  readonly totalSize: number;
}

/** A task that was found. */
export interface TaskSearchResult {
  /** The task, without its history and its artifacts. */
  readonly task: Task;
  /** Where the words are: at most three parts of its texts, the best first. */
  readonly snippets: readonly TaskSnippet[];
}

/** Longest text that is looked for, in UTF-16 units. */
const longestText = 1000;
/** Most tasks that a caller reads one page after the other. */
const deepest = 10_000;

const requestSchema: Schema<TaskSearchRequest> = object<TaskSearchRequest>({
  text: required(
    satisfying(filled, `must have at most ${longestText} characters`, ({ length }) => length <= longestText),
  ),
  contextId: optional(id),
  status: optional(taskStateSchema),
  pageSize: optional(integer(1, 100)),
  pageToken: optional(string),
});

const markSchema = object<TaskSnippet["marks"][number]>({ start: required(integer(0)), end: required(integer(0)) });

const responseSchema: Schema<TaskSearchResponse> = object<TaskSearchResponse>({
  results: required(
    list(
      object<TaskSearchResult>({
        task: required(taskSchema),
        snippets: required(
          list(
            object<TaskSnippet>({
              messageId: optional(string),
              artifactId: optional(string),
              text: required(string),
              marks: required(list(markSchema), none),
            }),
          ),
          none,
        ),
      }),
    ),
    none,
  ),
  nextPageToken: required(string, nothing),
  pageSize: required(integer(0), () => 0),
  totalSize: required(integer(0), () => 0),
});

/** The types of the extension. */
interface TaskSearchTypes extends ExtensionTypes {
  readonly metadata: object;
  readonly data: Readonly<Record<never, never>>;
  readonly subStates: never;
  readonly methods: { readonly "tasks/search": ExtensionMethod<TaskSearchRequest, TaskSearchResponse> };
  readonly turn: TurnReads<TaskSearchTypes>;
  readonly event: EventReads<TaskSearchTypes>;
}

/** The Task Search extension. */
export type TaskSearchExtension = DefinedExtension<typeof taskSearchUri, TaskSearchTypes>;

/**
 * The Task Search extension: full text search in one's own tasks. The store of the server has to have full text search, as `memoryStore()`
 * and those of `@parley/sql` do.
 *
 * @example
 * ```ts
 * const client = await connect("https://agents.example.com", { extensions: [taskSearch] });
 * const { results } = await client.ext(taskSearch).call("tasks/search", { text: '"red sailboat" lake*' });
 * for (const { task, snippets } of results) console.log(task.id, snippets[0]?.text);
 * ```
 */
export const taskSearch: TaskSearchExtension = /* @__PURE__ */ makeTaskSearch();

function makeTaskSearch(): TaskSearchExtension {
  return defineExtension({
    uri: taskSearchUri,
    description: "Finds one's own tasks by their texts: the method tasks/search.",
    kind: "method",
    searchesTasks: true,
    methods: {
      "tasks/search": extensionMethod({
        request: standardSchema(requestSchema),
        response: standardSchema(responseSchema),
        idempotent: true,
        rest: { method: "POST", path: "/tasks:search" },
        grpc: "/parley.tasksearch.v1.TaskSearch/SearchTasks",
        onCall: search,
      }),
    },
  }) as TaskSearchExtension;
}

async function search(request: TaskSearchRequest, call: ExtensionCall): Promise<TaskSearchResponse> {
  const { pageSize = 20, pageToken = "", ...query } = request;
  const skip = pageToken === "" ? 0 : skipOf(pageToken, request);
  const { tasks, total } = await call.searchTasks({ ...query, limit: pageSize, skip });
  const next = skip + pageSize;
  const isLast = next >= total || next > deepest;
  return {
    results: tasks,
    nextPageToken: isLast ? "" : tokenOf(next, request),
    pageSize,
    totalSize: total,
  };
}

/* A token is how many tasks the pages before had. It is accepted for the search that it is of: access is limited by who calls. */

function tokenOf(skip: number, { text, contextId, status }: TaskSearchRequest): string {
  return `${jsonHash([skip, text, contextId ?? null, status ?? null])}.${skip}`;
}

function skipOf(token: string, request: TaskSearchRequest): number {
  const skip = Number(/^[0-9a-f]+\.(\d{1,5})$/.exec(token)?.[1]);
  if (Number.isSafeInteger(skip) && tokenOf(skip, request) === token) return skip;
  throw invalidParams([{ field: "pageToken", description: "is not one that this search gave out" }]);
}
