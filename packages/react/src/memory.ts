import type { Message } from "@parley/a2a/model";
import { check, isObject } from "@parley/a2a/internal/model/schema";
import { messageSchema } from "@parley/a2a/internal/model/schemas";
import type { ConversationStorage } from "./types.ts";

/** Maximum number of tasks that are read, and of messages that are retried, newest first. */
export const maxEntries = 100;

/** The saved state of a conversation. The agent has the rest. */
export interface Saved {
  readonly contextId: string | undefined;
  readonly taskIds: readonly string[];
  /** Messages that the agent has not accepted yet. */
  readonly unsent: readonly Message[];
  /** Ids of unsent messages that the agent may have accepted. */
  readonly tried: readonly string[];
}

/** The entry of a conversation in the storage that the page chose. */
export class Memory {
  readonly #storage: ConversationStorage | undefined;
  readonly #key: string;
  /** The last write, for which the next one waits. */
  #written: Promise<unknown> | undefined;

  constructor(storage: ConversationStorage | undefined, key: string) {
    this.#storage = storage;
    this.#key = key;
  }

  /** Invalid parts of an entry count as absent. */
  async read(): Promise<Saved> {
    const value = parsed((await this.#storage?.getItem(this.#key)) ?? "null");
    const { contextId, taskIds, unsent, tried } = isObject(value) ? value : {};
    return {
      contextId: typeof contextId === "string" ? contextId : undefined,
      taskIds: idsIn(taskIds),
      tried: idsIn(tried),
      unsent: Array.isArray(unsent) ? unsent.flatMap(messageIn).slice(-maxEntries) : [],
    };
  }

  /** If the messages do not fit, such as with large files, stores only the ids. A storage failure affects only the next reload, not the conversation. */
  write(saved: Saved): void {
    const storage = this.#storage;
    if (storage === undefined) return;
    const put = (value: Saved): unknown => storage.setItem(this.#key, JSON.stringify(value));
    const putAll = async (): Promise<unknown> => {
      try {
        return await put(saved);
      } catch {
        return put({ ...saved, unsent: [] });
      }
    };
    // The first write is synchronous, because a closing page may not write later.
    const write = this.#written === undefined ? putAll() : this.#written.then(putAll);
    this.#written = write.catch(() => undefined);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function idsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((id) => typeof id === "string").slice(-maxEntries) : [];
}

function messageIn(value: unknown): readonly Message[] {
  const result = check(messageSchema, value, "request");
  return result.ok && result.value.role === "ROLE_USER" ? [result.value] : [];
}
