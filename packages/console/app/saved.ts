import { signal } from "@preact/signals";
import type { AgentEntry, WireRecord } from "../src/api.ts";
import type { Entry } from "./talk.ts";

/** The content of a session file. */
export interface SavedSession {
  readonly parley: "session";
  readonly version: 1;
  /** ISO 8601. */
  readonly savedAt: string;
  readonly agents: readonly AgentEntry[];
  readonly wire: readonly WireRecord[];
  readonly chats: readonly SavedChat[];
}

export interface SavedChat {
  /** `AgentEntry.id`. */
  readonly agent: string;
  readonly entries: readonly Entry[];
}

/** The session of an opened file. While it is open, the page sends nothing. */
export const readOnly = signal<SavedSession | undefined>(undefined);

/** The reason why a file could not be opened. */
export const fileProblem = signal("");
