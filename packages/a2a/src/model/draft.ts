import { check, list, object, optional } from "./schema.ts";
import type { RecordKind } from "./log.ts";
import { messageSchema, taskStatusSchema } from "./schemas.ts";
import type {
  GetTaskRequest,
  SendMessageConfiguration,
  Artifact,
  Message,
  StreamResponse,
  Task,
  TaskStatus,
} from "./types.ts";

/**
 * Additions of the A2A 1.1 draft: generations (§3.2.7), which count a task's creation, status and artifact events, and the
 * timeline of a task (§3.2.8). Only callers of version 1.1 see them.
 */

/** The member that the 1.1 draft adds to tasks and to their status and artifact events (§3.2.7). */
export interface Generation {
  /** The number of events, including this one. An int64, which JSON carries as text. */
  readonly generation?: string;
}

/** `GetTaskRequest` with the additions of the 1.1 draft. */
export interface GetTaskRequestDraft extends GetTaskRequest {
  /** The server answers only when the task's generation is greater, or when its wait ends. */
  readonly currentGeneration?: number;
}

/** `SendMessageConfiguration` with the additions of the 1.1 draft. */
export interface SendMessageConfigurationDraft extends SendMessageConfiguration {
  /** For a message to a task: reject it with `TaskGenerationMismatch` unless the task is at this generation. */
  readonly ifGenerationMatch?: number;
}

/** Whether a protocol version (`Major.Minor`) has generations: 1.1 and later minor versions of 1. */
export function hasGenerations(version: string): boolean {
  if (version === "1.0") return false;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major === 1 && minor >= 1;
}

/** Whether records of a kind count in the `generation` of the 1.1 draft. All do, except the user's messages. */
export function countsInGeneration(kind: RecordKind): boolean {
  return kind !== "message";
}

/** The generation of a task or an event. `undefined` if the server sends none, or 0. */
export function generationOf(value: Task | StreamResponse): number | undefined {
  const counted = "status" in value ? value : (value.task ?? value.statusUpdate ?? value.artifactUpdate);
  return counted !== undefined && "generation" in counted ? countOf(counted.generation) : undefined;
}

/** An entry of a task's timeline (1.1 draft, §4.1.8), with one of the two members. */
export interface TimelineEntry {
  /** A message of the user. */
  readonly message?: Message;
  /** An earlier status of the task, with the content of its `TaskStatusUpdateEvent`. */
  readonly status?: TaskStatus;
}

const entriesSchema = /* @__PURE__ */ list(
  /* @__PURE__ */ object<TimelineEntry>({
    message: /* @__PURE__ */ optional(messageSchema),
    status: /* @__PURE__ */ optional(taskStatusSchema),
  }),
);

/** The timeline of a task, oldest entry first (1.1 draft, §3.2.8); `undefined` if the server sends none, or an invalid one. */
export function timelineOf(task: Task): readonly TimelineEntry[] | undefined {
  if (!("timeline" in task)) return undefined;
  const result = check(entriesSchema, task.timeline, "answer");
  return result.ok ? result.value : undefined;
}

/** The generations of its task in which an artifact began and ended (1.1 draft). A value that the server does not send is `undefined`. */
export function spanOf(artifact: Artifact): { readonly start: number | undefined; readonly end: number | undefined } {
  const { startGeneration, endGeneration }: Readonly<Record<string, unknown>> = { ...artifact };
  return { start: countOf(startGeneration), end: countOf(endGeneration) };
}

/** An int64 in ProtoJSON that counts from 1. */
function countOf(value: unknown): number | undefined {
  const count = typeof value === "string" || typeof value === "number" ? Number(value) : 0;
  return Number.isSafeInteger(count) && count > 0 ? count : undefined;
}
