import type { GetTaskRequest, SendMessageConfiguration, StreamResponse, Task } from "./types.ts";

/**
 * What the draft of A2A 1.1 adds (§3.2.7): a task's generation, a counter of what happened to it. It is spoken only with
 * those who ask for that version; to everyone else these members do not exist.
 */

/** Of a Task, and of its status and artifact events: how many of those there were, this one included. An int64, so text. */
export interface Generation {
  readonly generation?: string;
}

export interface GetTaskRequestDraft extends GetTaskRequest {
  /** Wait for a generation beyond this one, as long as the server will. */
  readonly currentGeneration?: number;
}

export interface SendMessageConfigurationDraft extends SendMessageConfiguration {
  /** For a message to a task: refuse it with `TaskGenerationMismatch` unless the task stands at this generation. */
  readonly ifGenerationMatch?: number;
}

/** Whether a version, `Major.Minor`, knows generations. */
export function hasGenerations(version: string): boolean {
  if (version === "1.0") return false;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major === 1 && minor >= 1;
}

/** The generation of a task or an event, where its server tells one: 0 means that it does not. */
export function generationOf(value: Task | StreamResponse): number | undefined {
  const { task, statusUpdate, artifactUpdate } = value as StreamResponse;
  const counted = (task ?? statusUpdate ?? artifactUpdate ?? value) as Generation;
  const generation = Number(counted.generation ?? 0);
  return Number.isSafeInteger(generation) && generation > 0 ? generation : undefined;
}
