/**
 * The Task Search extension: full text search in one's own tasks.
 * @packageDocumentation
 */

export {
  taskSearch,
  taskSearchUri,
  type TaskSearchExtension,
  type TaskSearchRequest,
  type TaskSearchResponse,
  type TaskSearchResult,
} from "./task-search.ts";
