/**
 * The Task Search extension: full text search in the caller's own tasks.
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
  /** Words, quoted phrases, and prefixes that end in `*`: 1 to 1,000 characters. A task must contain all of them. */
  readonly text: string;
  /** Only tasks of this context. */
  readonly contextId?: string;
  /** Only tasks in this state. */
  readonly status?: TaskState;
  /** Page size, 1 to 100. Default 20. */
  readonly pageSize?: number;
  /** `nextPageToken` of the previous page. */
  readonly pageToken?: string;
}

/** A response of `tasks/search`. */
export interface TaskSearchResponse {
  /** The tasks, best first. */
  readonly results: readonly TaskSearchResult[];
  /** Token of the next page; empty on the last one. */
  readonly nextPageToken: string;
  /** Maximum number of tasks on a page. */
  readonly pageSize: number;
  /** Number of matching tasks on all pages. */
  readonly totalSize: number;
}

/** A matching task. */
export interface TaskSearchResult {
  /** The task without history and artifacts. */
  readonly task: Task;
  /** Up to three matching parts of its texts, best first. */
  readonly snippets: readonly TaskSnippet[];
}

/** Longest text, in UTF-16 units. */
const longestText = 1000;
/** Maximum number of tasks that can be paged through. */
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
 * The Task Search extension: full text search in the caller's own tasks. It needs a store with full text search, such
 * as `memoryStore()` and the stores of `@parley/sql`.
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
    description: "Finds the caller's own tasks by their texts, with the method tasks/search.",
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
  return { results: tasks, nextPageToken: isLast ? "" : tokenOf(next, request), pageSize, totalSize: total };
}

/* A token is a hash of its search and the number of tasks on earlier pages. It grants no access: each page has only the caller's tasks. */

function tokenOf(skip: number, { text, contextId, status }: TaskSearchRequest): string {
  return `${jsonHash([skip, text, contextId ?? null, status ?? null])}.${skip}`;
}

function skipOf(token: string, request: TaskSearchRequest): number {
  const skip = Number(/^[0-9a-f]+\.(\d{1,5})$/.exec(token)?.[1]);
  if (Number.isSafeInteger(skip) && tokenOf(skip, request) === token) return skip;
  throw invalidParams([{ field: "pageToken", description: "must be a token of this search" }]);
}
