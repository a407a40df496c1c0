/**
 * The client: it finds an agent, calls it, and resumes its streams. The data model is in `@parley/a2a/model`.
 * @packageDocumentation
 */

// Calling agents.
export {
  answerAuthorization,
  Client,
  collect,
  connect,
  connectJsonRpc,
  connectWith,
  Conversation,
  dataOf,
  download,
  EventStream,
  GrowingText,
  jsonRpcBinding,
  readAuthorization,
  readText,
  resilient,
  restBinding,
  safeFileName,
  TaskView,
  type AuthorizationAnswer,
  type AuthorizationRequest,
  type CachedCard,
  type CallOptions,
  type CardCache,
  type ClientBinding,
  type ConnectOptions,
  type ConversationInit,
  type DataSource,
  type DownloadOptions,
  type ExtensionClient,
  type InterfaceChoice,
  type MessageInit,
  type OlderCard,
  type ReceivedAnswer,
  type ReceivedEvent,
  type ReceivedList,
  type ReceivedTask,
  type ResilientOptions,
  type RetryPolicy,
  type SendInit,
  type SendInput,
  type SubscribeOptions,
  type TaskSnapshot,
  type TextPiece,
  type UpdateListener,
  type Updates,
  type WaitOptions,
  type WatchedTask,
  type WebhookInbox,
  type WithExtensions,
} from "./client/index.ts";

// Content and errors.
export { A2AError, data, file, hasCode, text } from "./model/index.ts";
export type { AgentCard, Artifact, Message, Part, StreamResponse, Task } from "./model/index.ts";
