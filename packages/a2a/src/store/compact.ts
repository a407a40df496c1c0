import { membersOf, objectOf } from "../base/json-text.ts";
import { joinArtifacts } from "./artifact-text.ts";
import { mergeMetadata, type TaskPieces } from "./assemble.ts";

/**
 * The same task in fewer pieces: its metadata in the base, and one update an artifact. Status records that are neither
 * history nor the last one are then of no use any more.
 */
export function compact(pieces: TaskPieces): Pick<TaskPieces, "base" | "artifacts"> {
  const { task, contextId } = pieces.head;
  const artifacts = joinArtifacts(pieces.artifacts).map((artifact) =>
    objectOf([
      ["taskId", JSON.stringify(task.taskId)],
      ["contextId", JSON.stringify(contextId)],
      ["artifact", artifact.join("")],
    ]),
  );
  if (pieces.metadata.length === 0) return { base: pieces.base, artifacts };
  const base = membersOf(pieces.base);
  base.set("metadata", mergeMetadata(pieces) ?? "{}");
  return { base: objectOf(base), artifacts };
}
