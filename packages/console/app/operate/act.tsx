import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { OperatedTask } from "@parley/server/internal/operate/port";
import { act, operators } from "./api.ts";
import { acted } from "./poll.ts";
import { stateOf } from "./words.ts";

/** An act that waits for its confirmation. */
export interface WantedAct {
  /** Name of the subcommand of `parley ops`, such as `drop-wait`. */
  readonly name: string;
  /** The question to the user, such as `Cancel this task?`. */
  readonly text: string;
  /** Arguments of the command. `inputs` has the same values for the API. */
  readonly words: readonly string[];
  readonly inputs: Readonly<Record<string, string>>;
  /** The task as the user sees it. The server rejects the act if the task has changed. */
  readonly task?: OperatedTask;
}

/** The act that waits for confirmation. */
export const wanted = signal<WantedAct | undefined>(undefined);

/** The equivalent shell command. */
export function commandOf({ name, words, task, inputs }: WantedAct, more: readonly string[] = []): string {
  const agent = task === undefined || task.agent === "/" ? [] : ["--agent", task.agent];
  const { url = "" } = operators.value ?? {};
  const at = url === "http://127.0.0.1:4000/ops" ? [] : ["--url", url];
  const about = inputs.node !== undefined || task === undefined ? [] : agent;
  return ["parley", "ops", name, ...words, ...about, ...more, ...at].map(word).join(" ");
}

/** Quotes a word for a POSIX shell. */
function word(text: string): string {
  return /^[\w./:@%+=][\w./:@%+=-]*$|^--\w+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Asks for confirmation, sends the act, and shows why the server rejects it. */
export function Confirm() {
  const { value } = wanted;
  return value === undefined ? null : <ConfirmAct key={`${value.name} ${value.words.join(" ")}`} wish={value} />;
}

function ConfirmAct({ wish }: { readonly wish: WantedAct }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const reason = useSignal("");
  const problem = useSignal("");
  const now = useSignal<OperatedTask | undefined>(undefined);
  const busy = useSignal(false);
  useEffect(() => dialog.current?.showModal(), []);
  const task = now.value ?? wish.task;
  const confirm = async (): Promise<void> => {
    busy.value = true;
    problem.value = "";
    try {
      const done = await act(wish.name, { ...wish.inputs, seq: task?.seq, reason: reason.value.trim() });
      if (!done.ok) {
        problem.value = done.message;
        now.value = "task" in done ? done.task : undefined;
        return;
      }
      acted.value++;
      wanted.value = undefined;
    } catch (thrown) {
      problem.value = thrown instanceof Error ? thrown.message : String(thrown);
    } finally {
      busy.value = false;
    }
  };
  const given = reason.value.trim() === "" ? [] : ["--reason", reason.value.trim()];
  const seq = task === undefined ? [] : ["--seq", String(task.seq)];
  return (
    <dialog ref={dialog} class="confirm" aria-label={wish.text} onClose={() => (wanted.value = undefined)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void confirm();
        }}
      >
        <h1>{wish.text}</h1>
        {task !== undefined && (
          <p class="quiet">
            Task {task.taskId} of {task.agent} is {stateOf(task)}, entry {task.seq}
          </p>
        )}
        <label>
          Reason, for the audit log
          <input
            name="reason"
            maxLength={1_000}
            autocomplete="off"
            value={reason.value}
            onInput={({ currentTarget }) => (reason.value = currentTarget.value)}
          />
        </label>
        <p class="quiet">Equivalent command:</p>
        <pre tabIndex={0}>{commandOf(wish, [...seq, ...given])}</pre>
        {problem.value !== "" && (
          <p class="problem" role="alert">
            Rejected: {problem.value}
            {now.value !== undefined && `. The task is now ${stateOf(now.value)}, entry ${now.value.seq}`}
          </p>
        )}
        <div class="tools">
          <button type="submit" disabled={busy.value}>
            {now.value === undefined ? "Confirm" : "Confirm anyway"}
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Back
          </button>
        </div>
      </form>
    </dialog>
  );
}
