import type { Part, Task } from "@parley/a2a";
import { readAuthorization } from "@parley/a2a/internal/protocol/index";
import { answerOf, formIn, hintOf, shown, type Field, type Form } from "@parley/a2a/internal/schema/form";
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { Authorization } from "./authorization.tsx";
import { Problem, useAttempt } from "./form.tsx";

interface AnswerProps {
  readonly task: Task;
  readonly onAnswer: (parts: readonly Part[]) => Promise<void>;
  /** Whether to show a text field for a question without a form. */
  readonly withText: boolean;
}

/** Asks the user for the input of a waiting task: a form, an authorization, or text. */
export function Answer({ task, onAnswer, withText }: AnswerProps) {
  const { status } = task;
  if (status.state === "TASK_STATE_AUTH_REQUIRED") {
    const request = readAuthorization(status.message);
    if (request === undefined) return <p class="quiet">The agent waits for an authorization, but sent no link.</p>;
    return <Authorization key={request.id} task={task} request={request} onAnswer={onAnswer} />;
  }
  const form = formIn(status.message);
  if (form !== undefined) return <FormOf key={status.message?.messageId} form={form} onAnswer={onAnswer} />;
  return withText ? <TextAnswer onAnswer={onAnswer} /> : null;
}

type OnAnswer = Pick<AnswerProps, "onAnswer">;

function FormOf({ form: { fields, sample }, onAnswer }: OnAnswer & { readonly form: Form }) {
  if (fields === undefined) return <JsonForm sample={sample ?? {}} onAnswer={onAnswer} />;
  return <FieldForm fields={fields} onAnswer={onAnswer} />;
}

function FieldForm({ fields, onAnswer }: OnAnswer & { readonly fields: readonly Field[] }) {
  const texts = useSignal<Readonly<Record<string, string>>>({});
  const problems = useSignal<Readonly<Record<string, string>>>({});
  const busy = useSignal(false);
  const send = async (): Promise<void> => {
    const answers = fields.map((field) => ({ field, answer: answerOf(field, (texts.value[key(field)] ?? "").trim()) }));
    const wrong = answers.flatMap(({ field, answer }) =>
      "problem" in answer ? [[key(field), answer.problem] as const] : [],
    );
    problems.value = Object.fromEntries(wrong);
    if (wrong.length > 0) return;
    const given = answers.flatMap(({ field, answer }) =>
      "value" in answer && answer.value !== undefined ? [[field.name, answer.value] as const] : [],
    );
    busy.value = true;
    await onAnswer([{ data: Object.fromEntries(given) }]).finally(() => (busy.value = false));
  };
  return (
    <form
      class="asked"
      aria-label="Form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {fields.map((field) => (
        <FieldInput
          key={field.name}
          field={field}
          text={texts.value[key(field)] ?? ""}
          problem={problems.value[key(field)]}
          onText={(text) => (texts.value = { ...texts.value, [key(field)]: text })}
        />
      ))}
      <button type="submit" disabled={busy.value}>
        Send form
      </button>
    </form>
  );
}

/** The prefix prevents collisions with names such as `__proto__`. */
const key = ({ name }: Field): string => `field ${name}`;

interface FieldProps {
  readonly field: Field;
  readonly text: string;
  readonly problem: string | undefined;
  readonly onText: (text: string) => void;
}

function FieldInput({ field, text, problem, onText }: FieldProps) {
  const id = useId();
  const { label, description, required, initial } = field;
  const hint = [hintOf(field), initial === undefined ? "" : `default ${shown(initial)}`].filter(Boolean).join("; ");
  const common = {
    id,
    value: text,
    "aria-required": required,
    "aria-invalid": problem !== undefined,
    "aria-describedby": `${id}-about`,
  };
  const choices = field.choices?.map(shown) ?? (field.kind === "boolean" ? ["yes", "no"] : undefined);
  return (
    <div class="field">
      <label for={id} dir="auto">
        {label}
      </label>
      {choices === undefined ? (
        <TypedInput {...common} field={field} onText={onText} />
      ) : (
        <select {...common} onChange={({ currentTarget }) => onText(currentTarget.value)}>
          <option value="" />
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      )}
      <div id={`${id}-about`}>
        {description !== undefined && (
          <p class="quiet" dir="auto">
            {description}
          </p>
        )}
        {hint !== "" && <p class="quiet">{hint}</p>}
        {problem !== undefined && <p class="problem">{problem}</p>}
      </div>
    </div>
  );
}

interface TypedInputProps extends Pick<FieldProps, "field" | "onText"> {
  readonly id: string;
  readonly value: string;
  readonly "aria-required": boolean;
  readonly "aria-invalid": boolean;
  readonly "aria-describedby": string;
}

function TypedInput({ field, onText, ...rest }: TypedInputProps) {
  const { kind, schema } = field;
  const onInput = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void =>
    onText(currentTarget.value);
  const format = kind === "string" ? schema["format"] : undefined;
  if (format === "password") return <input {...rest} type="password" autocomplete="off" onInput={onInput} />;
  if (format === "date") return <input {...rest} type="date" onInput={onInput} />;
  return <input {...rest} dir="auto" onInput={onInput} />;
}

/** One JSON input, for a form that cannot be shown field by field. */
function JsonForm({ sample, onAnswer }: OnAnswer & { readonly sample: unknown }) {
  const text = useSignal(JSON.stringify(sample, null, 2));
  const { problem, attempt } = useAttempt();
  const send = (): void => {
    const data: unknown = JSON.parse(text.value);
    if (typeof data !== "object" || data === null || Array.isArray(data))
      throw new Error("The data must be a JSON object");
    void onAnswer([{ data: { ...data } }]);
  };
  return (
    <form
      class="asked"
      aria-label="Form"
      onSubmit={(event) => {
        event.preventDefault();
        void attempt(send);
      }}
    >
      <label>
        Data of the form, as JSON
        <textarea
          rows={8}
          spellcheck={false}
          value={text.value}
          onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        />
      </label>
      <Problem text={problem.value} />
      <button type="submit">Send form</button>
    </form>
  );
}

function TextAnswer({ onAnswer }: OnAnswer) {
  const text = useSignal("");
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.value !== "") void onAnswer([{ text: text.value }]).then(() => (text.value = ""));
      }}
    >
      <textarea
        rows={2}
        aria-label="Answer"
        placeholder="Answer"
        dir="auto"
        value={text.value}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
      />
      <button type="submit">Answer</button>
    </form>
  );
}
