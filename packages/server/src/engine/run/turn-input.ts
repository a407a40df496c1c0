import type { JsonValue, Message } from "@parley/a2a/internal/model/index";
import type { Principal } from "@parley/a2a/internal/protocol/index";
import type { ExtensionsOfTurn } from "@parley/a2a/internal/extensions/turn";
import type { StoredRun } from "../../store/index.ts";
import type { StoredCall } from "../log/index.ts";
import type { LostRange } from "./replay.ts";

/* What a turn is about: the message that it answers, and what is left of earlier attempts. */

/** A checkpoint as it is stored: the value of the agent, and how many events and ids it had made. */
export interface StoredCheckpoint {
  /** Absent: the agent has saved none. */
  readonly value?: JsonValue;
  readonly events: number;
  readonly ids: number;
  /** What the turn had counted (`TurnBase.count`). Absent: nothing. */
  readonly counts?: readonly (readonly [string, number])[];
  /** Events after it in the log that do not count, since a later attempt did not repeat them. Absent: none. */
  readonly lost?: readonly LostRange[];
  /** The turn had asked a question. */
  readonly asked?: true;
  /** The turn that goes on with the answer to a question of a delegation. */
  readonly suspended?: SuspendedTurn;
  /** The run of a turn that waits. It goes on when one of its waits is over. */
  readonly waiting?: StoredRun;
}

/** A turn that has ended with the question of a delegation, and goes on in the turn of the answer. */
export interface SuspendedTurn {
  /** The turn, from 1. */
  readonly turn: number;
  /** `seq` of its message. */
  readonly input: number;
  /** How many attempts it had, in all turns so far. */
  readonly attempt: number;
  /** The turn whose run asked: a later one than `turn` where the function has asked before. */
  readonly askedIn: number;
}

/** A turn of a task, and the message that it answers. */
export interface TurnInput {
  /** From 1. */
  readonly turn: number;
  /** From 1. A later attempt resumes a run that was lost. */
  readonly attempt: number;
  /** `seq` of the message. */
  readonly input: number;
  readonly message: Message;
  readonly call: StoredCall;
  /** The sender: with all claims where the turn begins with its request, else as far as it was stored. */
  readonly principal: Principal;
  /** The declared headers of the request: all where the turn begins with it, else those that were stored. `undefined`: none. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly checkpoint: StoredCheckpoint | undefined;
  /** The turn that goes on with `message`, which answers the question of a delegation. The agent sees this turn. */
  readonly resumes?: ResumedTurn | undefined;
  /** How many ids `makeId` has returned, those before the checkpoint included: a resumed run makes the same ids again. */
  ids: number;
  /** What it has counted, those before the checkpoint included. Made with the first count. */
  counts?: Map<string, number> | undefined;
  /** The extensions that are active in the turn, from its beginning. `undefined`: none. */
  active?: ExtensionsOfTurn;
}

/** A turn that goes on, and its message. */
export interface ResumedTurn extends SuspendedTurn {
  readonly message: Message;
  /** Of the call that brought this message. */
  readonly call: StoredCall;
}

/** URIs of the extensions that are active in the turn that the agent sees. One that goes on with an answer has those of its message. */
export function activeIn({ call, resumes }: TurnInput): readonly string[] {
  return (resumes?.call ?? call).extensions;
}

/** Which attempt of the turn that the agent sees. */
export function attemptOf({ attempt, resumes }: TurnInput): number {
  return attempt + (resumes?.attempt ?? 0);
}
