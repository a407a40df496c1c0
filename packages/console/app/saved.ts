import { signal } from "@preact/signals";
import type { AgentEntry, WireRecord } from "../src/api.ts";
import type { Entry } from "./talk.ts";

/** A session as its file has it. */
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

/** The session of an opened file. While it is shown nothing is sent. */
export const readOnly = signal<SavedSession | undefined>(undefined);

/** Why a file was not opened. */
export const fileProblem = signal("");
