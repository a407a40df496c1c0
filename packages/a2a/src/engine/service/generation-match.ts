import {
  A2AError,
  hasGenerations,
  type SendMessageConfigurationDraft,
  type SendMessageRequest,
} from "../../model/index.ts";
import type { TaskHead } from "../../store/index.ts";

/** The generation that the task of a message must have (§3.2.2 of the 1.1 draft); a message that makes its task has none. */
export function wantedGeneration(request: SendMessageRequest, version: string): number | undefined {
  const configuration: SendMessageConfigurationDraft | undefined = request.configuration;
  return hasGenerations(version) ? configuration?.ifGenerationMatch : undefined;
}

export function hasMovedOn({ task: { taskId }, generation }: TaskHead, wanted: number): A2AError {
  return new A2AError("TaskGenerationMismatch", `The task is at generation ${generation}, not at ${wanted}`, {
    metadata: { taskId, expectedGeneration: String(wanted), currentGeneration: String(generation) },
  });
}
