import type { Turn } from "@parley/server";
import { messagesOf } from "../shared/messages.ts";
import type { Fork } from "./port.ts";

/* The scope of an agent's memory, and the message added to it. */

/** The owner of the memory. Never taken from a message or its metadata, because a caller could name someone else there. */
interface Scope {
  readonly resourceId: string;
  readonly threadId: string;
}

/** The authenticated caller, and the conversation. Anonymous callers share nothing, because each of their conversations is its own owner. */
function scopeOf({ principal: { organization, subject }, contextId }: Turn): Scope {
  const isAnonymous = subject === "anonymous" && organization === undefined;
  const owner = isAnonymous ? [null, subject, contextId] : [organization ?? null, subject];
  return { resourceId: JSON.stringify(owner), threadId: contextId };
}

/** Run options for an agent with memory. */
export function memoryOf(turn: Turn, fork: Fork): object {
  const { resourceId, threadId } = scopeOf(turn);
  return fork.hasOwnMemory() ? { memory: { resource: resourceId, thread: threadId } } : {};
}

/** The message of the turn for a memory. The id derives from the turn, so a new attempt overwrites the message, and callers cannot choose the id. */
export async function messageOf(turn: Turn): Promise<object> {
  const own = await turn.context.history({ limit: 1 });
  const content = messagesOf(own).at(-1)?.content ?? [];
  const { resourceId, threadId } = scopeOf(turn);
  return {
    id: `${turn.taskId}-${turn.number}`,
    role: "user",
    createdAt: new Date(own.at(-1)?.time ?? turn.clock.now()),
    resourceId,
    threadId,
    content: { format: 2, parts: content.map(partOf) },
  };
}

function partOf(part: { readonly type: string; readonly mediaType?: string }): object {
  return part.type === "file" ? { ...part, mimeType: part.mediaType } : part;
}
