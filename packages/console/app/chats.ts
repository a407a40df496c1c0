import { signal } from "@preact/signals";
import type { AgentEntry } from "../src/api.ts";
import { Chat } from "./talk.ts";

/* The conversations with each agent. Kept while the page is open. */

const chats = new Map<string, readonly Chat[]>();

/** Incremented when a list changes. */
export const chatLists = signal(0);

/** The conversations with an agent. Never empty. */
export function chatsOf(agent: AgentEntry): readonly Chat[] {
  const known = chats.get(agent.id) ?? [new Chat(agent)];
  chats.set(agent.id, known);
  return known;
}

export function newChat(agent: AgentEntry): void {
  chats.set(agent.id, [...chatsOf(agent), new Chat(agent)]);
  chatLists.value++;
}

export function closeChat(chat: Chat): void {
  chats.set(
    chat.agent.id,
    chatsOf(chat.agent).filter((other) => other !== chat),
  );
  chatLists.value++;
}

/** The conversation that waits for an answer; otherwise the last one. */
export function chatOf(agent: AgentEntry): Chat | undefined {
  const all = chatsOf(agent);
  return all.find(({ busy }) => busy.value) ?? all.at(-1);
}

/** All conversations with at least one entry. */
export function allChats(): readonly Chat[] {
  return [...chats.values()].flat().filter(({ entries }) => entries.value.length > 0);
}
