import type { Artifact, JsonObject, Part, StreamResponse, Task } from "@parley/a2a/internal/model/index";
import { readTrace, type ResponseTrace } from "./trace.ts";

/** Longest text that is read as a trace, in characters. */
const longestText = 1 << 20;

/**
 * The trace in what an agent says. The specification has it in metadata of a message or an artifact, or as an artifact of its own; agents
 * that follow the sample have it in metadata of the status update, from where it becomes metadata of the task, or as a text of the artifact.
 */
export function findTrace(event: StreamResponse, key: string): ResponseTrace | undefined {
  for (const value of candidates(event, key)) {
    const trace = value === undefined ? undefined : readTrace(value);
    if (trace !== undefined) return trace;
  }
  return undefined;
}

function* candidates(event: StreamResponse, key: string): Generator<unknown> {
  const { message, statusUpdate, artifactUpdate, task } = event;
  const at = (metadata: JsonObject | undefined): unknown =>
    metadata !== undefined && Object.hasOwn(metadata, key) ? metadata[key] : undefined;
  yield at(message?.metadata);
  yield at(statusUpdate?.status.message?.metadata);
  yield at(statusUpdate?.metadata);
  if (artifactUpdate !== undefined) {
    yield at(artifactUpdate.metadata);
    yield* ofArtifact(artifactUpdate.artifact, at);
  }
  if (task !== undefined) yield* ofTask(task, at);
}

type At = (metadata: JsonObject | undefined) => unknown;

/** The message of its status is the newest of its places. */
function* ofTask({ status, metadata, artifacts = [] }: Task, at: At): Generator<unknown> {
  yield at(status.message?.metadata);
  yield at(metadata);
  for (const artifact of artifacts.toReversed()) yield* ofArtifact(artifact, at);
}

function* ofArtifact({ metadata, parts }: Artifact, at: At): Generator<unknown> {
  yield at(metadata);
  for (const part of parts) yield ofPart(part);
}

function ofPart({ text, data }: Part): unknown {
  if (data !== undefined) return data;
  if (text === undefined || text.length > longestText || !/^\s*\{/.test(text) || !/"trace_?id"/i.test(text))
    return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
