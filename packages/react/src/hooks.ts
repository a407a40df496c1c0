"use client";

import type { AgentCard } from "@parley/a2a";
import type { Task } from "@parley/a2a/model";
import { useMemo, useSyncExternalStore } from "react";
import type { CardSnapshot, RemoteAgent } from "./agent.ts";
import { renderedFirst } from "./conversation.ts";
import { snapshotOf } from "./feed.ts";
import { isServer } from "./frame.ts";
import { errorOf, messagesOf, questionOf, statusOf } from "./messages.ts";
import type { AgentCardResult, ConversationInit, ConversationResult, TaskResult } from "./types.ts";

/** Options of `useConversation()`. All except `agent` take effect only when the first component uses the conversation. */
export interface UseConversationOptions extends ConversationInit {
  /** The agent. */
  readonly agent: RemoteAgent;
}

/**
 * A conversation with an agent. Components with the same agent and id share it, with one stream per task. When the last of them unmounts, the
 * stream ends and the task continues. While an answer streams, the component renders at most once per frame.
 *
 * @example
 * ```ts
 * const travel = new RemoteAgent("https://agents.example.com/travel");
 *
 * function useTravel() {
 *   return useConversation({ agent: travel, id: "trip-7", storage: globalThis.sessionStorage });
 * }
 * ```
 */
export function useConversation({ agent, ...init }: UseConversationOptions): ConversationResult {
  const store = useMemo(() => agent.conversation(init), [agent, init.id, init.contextId, init.taskId]);
  const { contextId, tasks } = init;
  // Not the store's snapshot, because another component may have added to it.
  const onServer = useMemo(() => lazily(() => renderedFirst(init)), [contextId, tasks]);
  const snapshot = useSyncExternalStore(store.subscribe, store.getSnapshot, onServer);
  const { sendMessage, addToolApprovalResponse, regenerate, stop, resumeStream, clearError } = store;
  return { ...snapshot, sendMessage, addToolApprovalResponse, regenerate, stop, resumeStream, clearError };
}

/** Options of `useTask()`. */
export interface UseTaskOptions {
  /** The agent. */
  readonly agent: RemoteAgent;
  /** The id of the task, or a task that the server has read. */
  readonly task: string | Task;
}

/**
 * A task. Components with the same task share one stream, and each renders at most once per frame. If the server passes a task that has ended, the
 * page makes no request.
 *
 * @example
 * ```ts
 * const travel = new RemoteAgent("https://agents.example.com/travel");
 *
 * function useTrip(taskId: string) {
 *   return useTask({ agent: travel, task: taskId }).messages;
 * }
 * ```
 */
export function useTask({ agent, task: given }: UseTaskOptions): TaskResult {
  const id = typeof given === "string" ? given : given.id;
  const feed = useMemo(() => agent.task(given), [agent, id]);
  const onServer = useMemo(() => lazily(() => snapshotOf(given)), [given]);
  const snapshot = useSyncExternalStore(feed.subscribe, feed.getSnapshot, onServer);
  const { task, error = errorOf(task) } = snapshot;
  const messages = useMemo(() => (task === undefined ? [] : messagesOf(task)), [task]);
  const question = useMemo(() => task && questionOf(task), [task]);
  const status = error === undefined ? statusOf(task) : "error";
  return { task, messages, question, status, error, stop: feed.stop, resumeStream: feed.retry };
}

/** Options of `useAgentCard()`. */
export interface UseAgentCardOptions {
  /** The agent. */
  readonly agent: RemoteAgent;
  /** A card that the server has read. Neither this component nor a conversation fetches it again. */
  readonly card?: AgentCard;
  /** Whether the component suspends until the card arrives, and throws errors to the error boundary. Default: false. */
  readonly suspense?: boolean;
}

/**
 * The card of an agent.
 *
 * With `suspense` on a server, pass `card`. Otherwise the server sends the fallback of the suspense boundary, and the browser fetches the card.
 *
 * @example
 * ```ts
 * const travel = new RemoteAgent("https://agents.example.com/travel");
 *
 * function useName(): string {
 *   return useAgentCard({ agent: travel, suspense: true }).card.name;
 * }
 * ```
 */
export function useAgentCard(
  options: UseAgentCardOptions & { readonly suspense: true },
): AgentCardResult & { readonly card: AgentCard };
export function useAgentCard(options: UseAgentCardOptions): AgentCardResult;
export function useAgentCard({ agent, card: given, suspense = false }: UseAgentCardOptions): AgentCardResult {
  if (given !== undefined) agent.setCard(given);
  const onServer = useMemo(() => lazily((): CardSnapshot => (given === undefined ? {} : { card: given })), [given]);
  const { card, error } = useSyncExternalStore(agent.subscribeCard, agent.getCard, onServer);
  if (suspense && card === undefined) {
    if (error !== undefined) throw error;
    if (isServer()) throw new Error("useAgentCard() with suspense needs the option card on a server");
    // oxlint-disable-next-line only-throw-error -- How a component suspends in React 18 and 19.
    throw agent.client();
  }
  const status = error !== undefined ? "error" : card === undefined ? "submitted" : "ready";
  return { card, status, error, retry: agent.retry };
}

/** Makes the server snapshot once, when React requests it. */
function lazily<T extends object>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}
