import { insideOf, membersOf, openObjectOf } from "../base/json-text.ts";
import { ArtifactLedger, TaskFold, type TaskArtifactUpdateEvent } from "../model/index.ts";
import type { Fragments } from "./task-text.ts";

/** An update that counts, taken apart. */
interface Update {
  /** Its place among all of them. */
  readonly index: number;
  readonly artifactId: string;
  /** Whether it adds to an artifact that is there. */
  readonly append: boolean;
  /** Whether it is the first of its artifact. */
  readonly begins: boolean;
  /** The members of its artifact. */
  readonly artifact: Map<string, string>;
}

/** The updates that change a task, in order; `TaskFold` passes over the others as well. */
function* countingUpdates(updates: readonly string[]): Generator<Update, void> {
  const ledger = new ArtifactLedger();
  for (const [index, json] of updates.entries()) {
    const update = membersOf(json);
    const artifact = membersOf(update.get("artifact") ?? "{}");
    const artifactId = JSON.parse(artifact.get("artifactId") ?? '""') as string;
    const append = update.get("append") === "true";
    const step = { append, artifact: { artifactId }, lastChunk: update.get("lastChunk") === "true" };
    if (ledger.problem(step) !== undefined) continue;
    const begins = ledger.isClosed(artifactId) === undefined;
    ledger.note(step);
    yield { index, artifactId, append, begins, artifact };
  }
}

/** Which of the updates began an artifact, for each artifact in the order of `joinArtifacts`. */
export function artifactStarts(updates: readonly string[]): readonly number[] {
  const starts: number[] = [];
  for (const { index, begins } of countingUpdates(updates)) if (begins) starts.push(index);
  return starts;
}

interface Growing {
  /** Its members but for `parts`. */
  readonly rest: Map<string, string>;
  /** Texts of the insides of `parts` arrays. */
  readonly parts: string[];
}

/** Members of an artifact that the fold takes as they are. */
const joinable: ReadonlySet<string> = new Set(["artifactId", "name", "description", "parts", "metadata"]);

/** Each artifact as JSON text. Chunks that bring parts and nothing else, as nearly all do, are joined as they are. */
export function joinArtifacts(updates: readonly string[]): readonly Fragments[] {
  const joined = new Map<string, Growing>();
  for (const { artifactId, append, artifact } of countingUpdates(updates)) {
    const plain = artifact.has("artifactId") && [...artifact.keys()].every((name) => joinable.has(name));
    if (!plain) return foldArtifacts(updates);
    const parts = insideOf(artifact.get("parts") ?? "[]");
    artifact.delete("parts");
    const known = joined.get(artifactId);
    if (!append || known === undefined) joined.set(artifactId, { rest: artifact, parts: [parts] });
    else if (artifact.size === 1) known.parts.push(parts);
    else return foldArtifacts(updates);
  }
  return [...joined.values()].map(artifactOf);
}

function artifactOf({ rest, parts }: Growing): Fragments {
  const filled = parts.filter((part) => part.trim() !== "");
  if (filled.length === 0) return [`${openObjectOf(rest)},"parts":[]}`];
  const artifact: string[] = [];
  addList(artifact, `${openObjectOf(rest)},"parts":[`, filled);
  artifact.push("}");
  return artifact;
}

/** The same by way of parsing, for chunks that change more than parts. */
function foldArtifacts(updates: readonly string[]): readonly Fragments[] {
  const events = updates.map((json) => JSON.parse(json) as TaskArtifactUpdateEvent);
  const fold = new TaskFold({ id: events[0]?.taskId ?? "", status: { state: "TASK_STATE_WORKING" } });
  for (const artifactUpdate of events) fold.apply({ artifactUpdate });
  return (fold.snapshot().artifacts ?? []).map((artifact) => [JSON.stringify(artifact)]);
}

/** Adds a list to a text that is not joined yet. `before`: all up to its first item. */
export function addList(joined: string[], before: string, items: readonly (Fragments | string)[]): void {
  let separator = before;
  for (const item of items) {
    joined.push(separator);
    separator = ",";
    if (typeof item === "string") joined.push(item);
    else for (const fragment of item) joined.push(fragment);
  }
  joined.push("]");
}
