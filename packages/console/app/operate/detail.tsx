import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Explanation, ShownTask } from "@parley/server/internal/operate/port";
import { Problem } from "../parts/form.tsx";
import { Table } from "../parts/table.tsx";
import { State } from "../parts/task.tsx";
import { Time } from "../parts/time.tsx";
import { linkTo } from "../route.ts";
import { waiting } from "../tasks.ts";
import { commandOf, wanted, type WantedAct } from "./act.tsx";
import { operators, read } from "./api.ts";
import { filter } from "./list.ts";
import { polled } from "./poll.ts";
import { Question } from "./question.tsx";
import { ageOf, nodeWord, ownerWord, stateOf, stateWord } from "./words.ts";

/** A task of any owner: why it waits, its steps, webhooks and records, and the acts that an operator may take. */
export function Operated({ agent, taskId }: { readonly agent: string; readonly taskId: string }) {
  const shown = useSignal<ShownTask | undefined>(undefined);
  const problem = useSignal("");
  useEffect(
    () =>
      polled(async (isStopped) => {
        try {
          const found = await read<ShownTask>("/v1/task", { agent, taskId });
          if (isStopped()) return;
          if (found !== undefined) shown.value = found;
          problem.value = found === undefined ? "Task not found" : "";
        } catch (thrown) {
          if (!isStopped()) problem.value = thrown instanceof Error ? thrown.message : String(thrown);
        }
      }),
    [agent, taskId],
  );
  const { value } = shown;
  return (
    <section class="detail" aria-label="Task" tabIndex={0}>
      <header>
        <h1>{taskId}</h1>
        <a href={linkTo({ screen: "timeline", agent, item: taskId })}>Timeline</a>
      </header>
      <Problem text={problem.value} />
      {value === undefined ? problem.value === "" && <p class="quiet">Loading …</p> : <Shown shown={value} />}
    </section>
  );
}

function Shown({ shown }: { readonly shown: ShownTask }) {
  const { task, waits, steps, webhooks, takeovers, delegations, log, acts } = shown;
  const { run } = task;
  return (
    <>
      <p>
        {run?.suspended === true ? (
          <span class="status problem">suspended</span>
        ) : (
          <State state={task.state} text={stateOf(task)} />
        )}
        <span class="quiet">
          since <Time at={task.statusTime} />
        </span>
      </p>
      <Acts shown={shown} />
      <h2>Why</h2>
      {waits.map((why, at) => (
        <Why key={at} why={why} />
      ))}
      {waiting.includes(task.state) && <Question task={task} />}
      <h2>Facts</h2>
      <Facts shown={shown} />
      <p>
        <button
          type="button"
          class="small"
          aria-pressed={filter.value.owner === task.owner}
          onClick={() =>
            (filter.value = { ...filter.value, owner: filter.value.owner === task.owner ? "" : task.owner })
          }
        >
          List only tasks of this owner
        </button>
      </p>
      <Table
        title="Steps"
        names={["Step", "Of", "State", "Started", "Ended", ""]}
        rows={steps.map(({ name, scope, state, begun, ended }) => [
          name,
          scope,
          state,
          <Time at={begun} />,
          <Time at={ended} />,
          state === "done" ? (
            <Act
              label="Retry"
              on={name}
              wish={{
                ...about(shown, "retry-step", `Retry step ${JSON.stringify(name)}?`, [name]),
                inputs: { agent: task.agent, taskId: task.taskId, step: name },
              }}
            />
          ) : (
            ""
          ),
        ])}
      />
      <Table
        title="Webhooks"
        names={["Address", "State", "Delivered", "Failed attempts", "Next", "Problem"]}
        rows={webhooks.map(({ url, state, delivered, attempts, next, problem = "", refused }) => [
          url,
          state,
          `${delivered}`,
          `${attempts}`,
          <Time at={next} />,
          [problem, ...refused.map((one) => `entry ${one.seq}: ${one.problem}`)]
            .filter((text) => text !== "")
            .join("; "),
        ])}
      />
      <Table
        title="Takeovers"
        names={["Time", "Turn", "Attempt", "From", "By"]}
        rows={takeovers.map(({ time, turn, attempt, from = "released", node }) => [
          <Time at={time} />,
          `${turn}`,
          `${attempt}`,
          nodeWord(from),
          nodeWord(node),
        ])}
      />
      <Table
        title="Delegations"
        names={["Agent", "Task", "State"]}
        rows={delegations.map(({ agent, taskId = "not known", state }) => [agent, taskId, state])}
      />
      <Table
        title="Newest entries"
        names={["Entry", "Time", "Kind", "By", "Turn", "Attempt", "State", "Bytes"]}
        rows={log.map(({ seq, time, kind, actor, turn, attempt, state = "", bytes }) => [
          `${seq}`,
          <Time at={time} />,
          kind,
          actor,
          `${turn}`,
          `${attempt}`,
          stateWord(state),
          `${bytes}`,
        ])}
      />
      <Table
        title="Acts of operators"
        names={["Time", "Act", "By", "Outcome", "Reason"]}
        rows={acts.map(({ time, act, by = "-", outcome, reason = "" }) => [
          <Time at={time} />,
          act,
          by,
          outcome,
          reason,
        ])}
      />
    </>
  );
}

function Facts({ shown: { task } }: { readonly shown: ShownTask }) {
  const { run, node = "none" } = task;
  const facts = [
    ["Agent", task.agent],
    ["Owner", ownerWord(task.owner)],
    ["Context", task.contextId],
    ["Entries", `${task.seq} (${task.bytes.toLocaleString("en")} bytes)`],
    ["Node", node],
    ["Run", run === undefined ? "none" : `turn ${run.turn}, attempt ${run.attempt}, ${run.deaths} deaths`],
  ];
  return (
    <dl>
      {facts.map(([name, value]) => (
        <div key={name} class="fact">
          <dt>{name}</dt>
          <dd dir="auto">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Shows why a task waits, since when, and the command that helps, with the `--url` of this console's API. */
function Why({ why: { text, help, since } }: { readonly why: Explanation }) {
  const { url = "" } = operators.value ?? {};
  const isDefault = url === "http://127.0.0.1:4000/ops" || help?.startsWith("parley ops ") !== true;
  return (
    <>
      <p dir="auto">
        {text}{" "}
        <span class="quiet">
          Since <Time at={since} /> ({ageOf(since)})
        </span>
      </p>
      {help !== undefined && <pre tabIndex={0}>{isDefault ? help : `${help} --url ${url}`}</pre>}
    </>
  );
}

/** An act on the selected task. */
function about({ task }: ShownTask, name: string, text: string, words: readonly string[] = []): WantedAct {
  const { agent, taskId } = task;
  return { name, text, words: [taskId, ...words], inputs: { agent, taskId }, task };
}

/** The acts that the current state of the task allows. */
function Acts({ shown }: { readonly shown: ShownTask }) {
  const { task, waits } = shown;
  const { agent, taskId } = task;
  const isOver = shown.why.kind === "done";
  const mayResume = task.run?.suspended === true || task.state === "TASK_STATE_FAILED";
  const isPaused = waits.some(({ kind }) => kind === "agentPaused");
  return (
    <div class="tools">
      {!isOver && <Act label="Cancel" wish={about(shown, "cancel", "Cancel this task?")} />}
      {mayResume && <Act label="Resume" wish={about(shown, "resume", "Resume this task?")} />}
      {waits.map(
        (one) =>
          "wait" in one && (
            <Act
              key={one.wait}
              label={`Drop wait ${one.wait}`}
              wish={{
                ...about(shown, "drop-wait", `End wait ${JSON.stringify(one.wait)} as if it timed out?`, [one.wait]),
                inputs: { agent, taskId, wait: one.wait },
              }}
            />
          ),
      )}
      {isPaused && <Act label={`Unpause ${agent}`} wish={unpause(agent)} />}
    </div>
  );
}

export function pause(agent: string): WantedAct {
  const text = `Pause agent ${agent} on all nodes? Its new turns wait in the queue.`;
  return { name: "pause", text, words: [agent], inputs: { agent } };
}

export function unpause(agent: string): WantedAct {
  return { name: "unpause", text: `Unpause agent ${agent}?`, words: [agent], inputs: { agent } };
}

interface ActProps {
  readonly label: string;
  /** The object of the act, for the accessible name of the button. */
  readonly on?: string;
  readonly wish: WantedAct;
}

export function Act({ label, on, wish }: ActProps) {
  return (
    <button
      type="button"
      class="small"
      title={commandOf(wish)}
      aria-label={on === undefined ? undefined : `${label} ${on}`}
      onClick={() => (wanted.value = wish)}
    >
      {label}
    </button>
  );
}
