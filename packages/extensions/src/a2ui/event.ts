import type { Artifact, Message, Part, StreamResponse } from "@parley/a2a/internal/model/index";
import type { A2uiProblem, A2uiServerMessageOf } from "./messages.ts";
import { maxProblems, readParts } from "./parts.ts";
import { serverMessage } from "./schemas.ts";
import type { A2uiVersion } from "./versions.ts";

/* What a client is told. */

/** The messages of one message or one artifact. */
export interface A2uiPiece<Version extends A2uiVersion = A2uiVersion> {
  /** Which message or artifact it is. */
  readonly source: string;
  /** Whether they come after others of the same artifact. */
  readonly append: boolean;
  /** The messages, in order. */
  readonly messages: readonly A2uiServerMessageOf<Version>[];
}

/** What `event.ext()` gives a client. `reduceSurfaces()` takes it. */
export interface A2uiEvent<Version extends A2uiVersion = A2uiVersion> {
  /** All messages of the event, in order. */
  readonly messages: readonly A2uiServerMessageOf<Version>[];
  /** The same by what they came in. */
  readonly pieces: readonly A2uiPiece<Version>[];
  /** What was left out: the first 100. A client may tell the agent with `error()`. */
  readonly problems: readonly A2uiProblem[];
  /** Whether the event is a whole task, whose messages may have come before. */
  readonly replay: boolean;
}

interface Source {
  readonly source: string;
  readonly append: boolean;
  readonly parts: readonly Part[];
}

/** The messages of an event. */
export function readEvent<Version extends A2uiVersion>(
  version: Version,
  maxBytes: number,
  event: StreamResponse,
): A2uiEvent<Version> {
  const pieces: A2uiPiece<Version>[] = [];
  const problems: A2uiProblem[] = [];
  for (const { source, append, parts } of sourcesOf(event)) {
    const read = readParts<A2uiServerMessageOf<Version>>(version, serverMessage[version], maxBytes, parts);
    if (problems.length < maxProblems) problems.push(...read.problems);
    if (read.messages.length > 0) pieces.push({ source, append, messages: read.messages });
  }
  return {
    pieces,
    messages: pieces.flatMap(({ messages }) => messages),
    problems: problems.slice(0, maxProblems),
    replay: event.task !== undefined,
  };
}

/** A task has what its agent said before, then its artifacts, then its status: it does not say what came first. */
function sourcesOf({ message, task, statusUpdate, artifactUpdate }: StreamResponse): readonly Source[] {
  if (artifactUpdate !== undefined) {
    const { taskId, artifact, append = false } = artifactUpdate;
    return [{ ...ofArtifact(taskId, artifact), append }];
  }
  if (task === undefined) return ofMessage(message ?? statusUpdate?.status.message);
  const { id, history = [], artifacts = [], status } = task;
  const said = history.filter(
    ({ role, messageId }) => role === "ROLE_AGENT" && messageId !== status.message?.messageId,
  );
  return [
    ...said.flatMap(ofMessage),
    ...artifacts.map((artifact) => ofArtifact(id, artifact)),
    ...ofMessage(status.message),
  ];
}

function ofMessage(message: Message | undefined): readonly Source[] {
  return message === undefined ? [] : [{ source: `message ${message.messageId}`, append: false, parts: message.parts }];
}

function ofArtifact(taskId: string, { artifactId, parts }: Artifact): Source {
  return { source: `artifact ${taskId} ${artifactId}`, append: false, parts };
}
