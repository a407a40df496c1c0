import { utf8Length } from "@parley/a2a/internal/base/index";
import { isTextPart, type Message, type Part, type TaskArtifactUpdateEvent } from "@parley/a2a/internal/model/index";
import type { AgentEvent, AgentMessage } from "@parley/a2a/internal/protocol/index";
import type { Store, TaskKey } from "../../store/index.ts";

/* The text of artifacts in the message of the final status, for front ends that show no artifacts (`mirrorArtifactText`). */

/** A longer text would be stored twice for front ends that could hardly show it. */
const maxBytes = 256 << 10;

const suffix = "-mirror";

/** Whether a message repeats what artifacts of its task say: in the conversation it is said once. */
export function isMirror({ messageId, taskId, role }: Partial<Message>): boolean {
  return (
    role === "ROLE_AGENT" &&
    taskId !== undefined &&
    messageId?.startsWith(taskId) === true &&
    messageId.endsWith(suffix)
  );
}

/** Whether an event ends the task without a word of its own. */
export function endsSilently(event: AgentEvent | undefined): boolean {
  return event?.kind === "status" && event.state === "TASK_STATE_COMPLETED" && event.message === undefined;
}

/**
 * The message with the text of the artifacts of a turn, read from the log, so that it is the same after a crash. `undefined`: there is no
 * text, or too much.
 *
 * @param after - `seq` of the message of the turn.
 */
export async function mirrorOf(
  store: Pick<Store, "read">,
  task: TaskKey,
  { turn, after }: { readonly turn: number; readonly after: number },
): Promise<AgentMessage | undefined> {
  const texts = new Map<string, string>();
  for (let from = after; ;) {
    const page = await store.read(task, task.taskId, { after: from, limit: 256, kinds: ["artifactUpdate"] });
    const last = page?.records.at(-1);
    if (page === undefined || last === undefined) break;
    for (const { json } of page.records) {
      const { artifact, append } = JSON.parse(json) as TaskArtifactUpdateEvent;
      const before = append === true ? (texts.get(artifact.artifactId) ?? "") : "";
      texts.set(artifact.artifactId, before + textOf(artifact.parts));
    }
    if (utf8Length(joined(texts)) > maxBytes) return undefined;
    from = last.seq;
  }
  const text = joined(texts);
  return text === "" ? undefined : { messageId: `${task.taskId}-${turn}${suffix}`, parts: [{ text }] };
}

function textOf(parts: readonly Part[]): string {
  return parts
    .filter(isTextPart)
    .map(({ text }) => text)
    .join("");
}

function joined(texts: ReadonlyMap<string, string>): string {
  return [...texts.values()].filter((text) => text !== "").join("\n\n");
}
