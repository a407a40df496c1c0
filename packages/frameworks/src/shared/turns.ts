import { isInterrupted, isTerminal, type Message, type StreamResponse, type Task } from "@parley/a2a/model";

/* The turns of a task, for a front end. */

/** The id of the answer to a message. */
export function answerId(messageId: string): string {
  return `answer-${messageId}`;
}

/** Whether the answer of a task is in progress. */
export function isRunning({ status: { state } }: Task): boolean {
  return !isTerminal(state) && !isInterrupted(state);
}

/** A user message and its answer. */
export interface TaskTurn {
  /** The user message. `undefined` if the history no longer has the message. */
  readonly asked: Message | undefined;
  readonly answerId: string;
  /** Events of its answer. `undefined` if the answer is missing or in progress. */
  readonly answer: readonly StreamResponse[] | undefined;
}

/** The turns of a task. A task does not record which turn created an artifact, so all artifacts are in the last answer. */
export function turnsOf(task: Task): readonly TaskTurn[] {
  const { history = [] } = task;
  const starts = history.flatMap(({ role }, at) => (role === "ROLE_USER" || at === 0 ? [at] : []));
  return (starts.length === 0 ? [0] : starts).map((start, at) => {
    const messages = history.slice(start, starts[at + 1]);
    const asked = messages.find(({ role }) => role === "ROLE_USER");
    // The task's status holds its last message.
    const last = task.status.message?.messageId;
    const said = messages.filter((message) => message !== asked && message.messageId !== last);
    const isLast = at >= starts.length - 1;
    const isShown = isLast ? !isRunning(task) : said.length > 0;
    const events = [...said.map((message) => ({ message })), ...(isLast ? [{ task }] : [])];
    return { asked, answerId: answerId(asked?.messageId ?? task.id), answer: isShown ? events : undefined };
  });
}
