import type { Task } from "@parley/a2a";
import { useEffect } from "preact/hooks";
import { decisions, settle } from "../decisions.ts";
import { Content } from "./content.tsx";
import { Time } from "./time.tsx";

/** `TASK_STATE_INPUT_REQUIRED` becomes `input required`. */
function stateText(state: string): string {
  return state
    .replace(/^TASK_STATE_/, "")
    .toLowerCase()
    .replaceAll("_", " ");
}

/** The state of a task. `text`: shown instead of the name of the state. */
export function State({ state, text = stateText(state) }: { readonly state: string; readonly text?: string }) {
  return (
    <span class="status" data-state={state}>
      {text}
    </span>
  );
}

/** The artifacts of a task, and its status message. */
export function Results({ task }: { readonly task: Task }) {
  const { id, artifacts = [], status } = task;
  useEffect(() => settle(task), [id, status.state]);
  return (
    <>
      {artifacts.map(({ artifactId, name, parts }) => (
        <section key={artifactId} class="artifact">
          {name !== undefined && <h2 dir="auto">{name}</h2>}
          <Content parts={parts} />
        </section>
      ))}
      {status.message !== undefined && <Content parts={status.message.parts} />}
      <Decisions taskId={id} />
    </>
  );
}

/** The known outcomes of a task's authorization requests. */
function Decisions({ taskId }: { readonly taskId: string }) {
  const ended = decisions.value.filter((one) => one.taskId === taskId && one.outcome !== undefined);
  return (
    <>
      {ended.map(({ requestId, form, digest, outcome, at, by }) => (
        <p key={requestId} class="decision">
          The {form} {outcome}
          {at !== undefined && (
            <>
              {" "}
              at <Time at={at} withZone />
            </>
          )}
          {by !== undefined && ` as ${by}`}.{" "}
          <span class="quiet">
            Request {requestId}
            {digest !== undefined && (
              <>
                , <code>{digest}</code>
              </>
            )}
          </span>
        </p>
      ))}
    </>
  );
}
