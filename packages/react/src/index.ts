/**
 * React hooks for A2A agents.
 * @packageDocumentation
 */
export { RemoteAgent } from "./agent.ts";
export {
  useAgentCard,
  useConversation,
  useTask,
  type UseAgentCardOptions,
  type UseConversationOptions,
  type UseTaskOptions,
} from "./hooks.ts";
export { messagesOf } from "./messages.ts";
export type {
  AgentCardResult,
  ApprovalRequest,
  ApprovalResponse,
  ConversationActions,
  ConversationInit,
  ConversationMessage,
  ConversationResult,
  ConversationSnapshot,
  ConversationStorage,
  Question,
  Status,
  TaskResult,
} from "./types.ts";
