import type { Task } from "@parley/a2a";
import { Content } from "./content.tsx";

/** `TASK_STATE_INPUT_REQUIRED` is `input required`. */
function stateText(state: string): string {
  return state
    .replace(/^TASK_STATE_/, "")
    .toLowerCase()
    .replaceAll("_", " ");
}

export function State({ state }: { readonly state: string }) {
  return (
    <span class="status" data-state={state}>
      {stateText(state)}
    </span>
  );
}

/** The results of a task, and the message of its status. */
export function Results({ task: { artifacts = [], status } }: { readonly task: Task }) {
  return (
    <>
      {artifacts.map(({ artifactId, name, parts }) => (
        <section key={artifactId} class="artifact">
          {name !== undefined && <h2 dir="auto">{name}</h2>}
          <Content parts={parts} />
        </section>
      ))}
      {status.message !== undefined && <Content parts={status.message.parts} />}
    </>
  );
}
