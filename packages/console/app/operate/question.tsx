import { A2AError, type Task } from "@parley/a2a";
import type { OperatedTask } from "@parley/server/internal/operate/port";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Answer } from "../parts/answer.tsx";
import { Content } from "../parts/content.tsx";
import { Problem, useAttempt } from "../parts/form.tsx";
import { agentOf, session } from "../server.ts";
import { clientOf } from "../talk.ts";
import { answerTask } from "../tasks.ts";
import { acted } from "./poll.ts";
import { ownerWord } from "./words.ts";

/** Errors that hide a task from a user. */
const hiding: ReadonlySet<string> = new Set(["TaskNotFound", "Unauthenticated", "PermissionDenied"]);

/**
 * The question of a task that waits for its user, with a form for the answer. Operators see no content, so the page reads it as the
 * user who is signed in to the agent. This user may not own the task.
 */
export function Question({ task: { agent: id, taskId, owner, seq } }: { readonly task: OperatedTask }) {
  // With `parley inspect`, the operators' API may belong to another server than the connected agents.
  const agent = session.value?.mode === "server" ? agentOf(id) : undefined;
  const asked = useSignal<Task | undefined>(undefined);
  const isHidden = useSignal(agent === undefined);
  const unread = useSignal("");
  const { problem, attempt } = useAttempt();
  useEffect(() => {
    let isGone = false;
    const read = async (): Promise<void> => {
      if (agent === undefined) return;
      const client = await clientOf(agent);
      const found = await client.getTask(taskId);
      if (isGone) return;
      asked.value = found;
      isHidden.value = false;
      unread.value = "";
    };
    read().catch((error: unknown) => {
      if (isGone) return;
      // The agent answers as if the task of another user did not exist.
      if (error instanceof A2AError && hiding.has(error.code)) isHidden.value = true;
      else unread.value = error instanceof Error ? error.message : String(error);
    });
    return () => {
      isGone = true;
    };
  }, [agent?.id, taskId, seq]);
  const { value: question } = asked;
  if (isHidden.value) return <p class="quiet">Only {ownerWord(owner)} can read the question and answer it.</p>;
  if (agent === undefined) return null;
  if (question === undefined) return <Problem text={unread.value} />;
  return (
    <section aria-label="Question">
      <h2>Question</h2>
      {question.status.message !== undefined && <Content parts={question.status.message.parts} />}
      <Answer
        key={question.status.message?.messageId}
        withText
        task={question}
        onAnswer={async (parts) => {
          await attempt(() => answerTask(agent, question, parts));
          acted.value++;
        }}
      />
      <Problem text={problem.value} />
    </section>
  );
}
