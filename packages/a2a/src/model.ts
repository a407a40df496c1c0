/**
 * The data model of A2A 1.0: its JSON as types, builders, guards, errors, and the fold of a task's log.
 * @packageDocumentation
 */

// Messages, tasks, and the requests and responses of operations (A2A 1.0 §4.1, §3.1).
export type {
  Artifact,
  DataPart,
  GetTaskRequest,
  JsonLike,
  JsonObject,
  JsonValue,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  Part,
  RawPart,
  Role,
  SendMessageConfiguration,
  SendMessageRequest,
  SendMessageResponse,
  StreamResponse,
  Task,
  TaskArtifactUpdateEvent,
  TaskPushNotificationConfig,
  TaskState,
  TaskStatus,
  TaskStatusUpdateEvent,
  TextPart,
  UrlPart,
} from "./model/index.ts";

// Agent cards (§4.4) and security schemes (§4.5).
export type {
  AgentCapabilities,
  AgentCard,
  AgentExtension,
  AgentInterface,
  AgentSkill,
  SecurityRequirement,
  SecurityScheme,
} from "./model/index.ts";

// Builders, guards and readers of content.
export {
  artifact,
  bytesOf,
  data,
  file,
  fromBase64,
  isDataPart,
  isFilePart,
  isRawPart,
  isTextPart,
  isUrlPart,
  message,
  text,
  textOf,
  toBase64,
  type Content,
} from "./model/index.ts";

// The states of a task (§4.1.3), and the fold of its events.
export { isInterrupted, isTerminal, TaskFold, taskStates } from "./model/index.ts";

// Errors (§3.3.2, §5.4).
export {
  A2AError,
  hasCode,
  wireErrorCodes,
  wireErrors,
  type A2AErrorCode,
  type A2AErrorOptions,
  type FieldViolation,
} from "./model/index.ts";

// Additions of the 1.1 draft.
export { generationOf, spanOf, timelineOf } from "./model/index.ts";
