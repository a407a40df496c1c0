import type { RecordKind } from "./log.ts";
import type { GetTaskRequest, SendMessageConfiguration, StreamResponse, Task } from "./types.ts";

/**
 * What the draft of A2A 1.1 adds (§3.2.7): the generation of a task. It counts the task's creation and its status and
 * artifact events. Only callers that ask for version 1.1 see these members.
 */

/** The member that the 1.1 draft adds to tasks and to their status and artifact events (§3.2.7). */
export interface Generation {
  /** How many events there were, this one included. An int64, which JSON carries as text. */
  readonly generation?: string;
}

/** `GetTaskRequest` with what the 1.1 draft adds. */
export interface GetTaskRequestDraft extends GetTaskRequest {
  /** Answer only when the task's generation is greater than this one, or when the server stops waiting. */
  readonly currentGeneration?: number;
}

/** `SendMessageConfiguration` with what the 1.1 draft adds. */
export interface SendMessageConfigurationDraft extends SendMessageConfiguration {
  /** For a message to a task: refuse it as `TaskGenerationMismatch` unless the task is at this generation. */
  readonly ifGenerationMatch?: number;
}

/** Whether a protocol version (`Major.Minor`) has generations: 1.1 and later minor versions of 1. */
export function hasGenerations(version: string): boolean {
  if (version === "1.0") return false;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major === 1 && minor >= 1;
}

/** Whether records of a kind count in the `generation` of the 1.1 draft. All do, except the messages of the user. */
export function countsInGeneration(kind: RecordKind): boolean {
  return kind !== "message";
}

/** The generation of a task or an event. `undefined` where the server sends none, or 0. */
export function generationOf(value: Task | StreamResponse): number | undefined {
  const { task, statusUpdate, artifactUpdate } = value as StreamResponse;
  const counted = (task ?? statusUpdate ?? artifactUpdate ?? value) as Generation;
  const generation = Number(counted.generation ?? 0);
  return Number.isSafeInteger(generation) && generation > 0 ? generation : undefined;
}
