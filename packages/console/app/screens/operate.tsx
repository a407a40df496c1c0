import { useEffect, useMemo } from "preact/hooks";
import type {
  Act as DoneAct,
  Counts,
  OperatedNode,
  OperatedTask,
  PausedAgent,
} from "@parley/server/internal/operate/port";
import { Confirm } from "../operate/act.tsx";
import { refusedBy } from "../operate/api.ts";
import { Act, Operated as Detail, pause, unpause } from "../operate/detail.tsx";
import { Table } from "../parts/table.tsx";
import { agentOf, filter, holds, maxTasks, Operated, type Filter } from "../operate/list.ts";
import { OperatorSignIn } from "../operate/sign-in.tsx";
import { ageOf, nodeWord, ownerWord, stateWord, waitWord } from "../operate/words.ts";
import { Problem, useAttempt } from "../parts/form.tsx";
import { Time } from "../parts/time.tsx";
import { go, linkTo, route } from "../route.ts";

/** The operators' screen: the tasks of all owners, and next to them the selected task or the agents and nodes. */
export function Operate() {
  const { agent, item } = route.value;
  const operated = useMemo(() => new Operated(), []);
  const isRefused = refusedBy.value !== "";
  useEffect(() => (isRefused ? undefined : operated.follow(filter.value)), [operated, filter.value, isRefused]);
  if (isRefused) return <OperatorSignIn />;
  return (
    <div class="split">
      <section class="list" aria-label="Tasks of all owners">
        <Filters filter={filter.value} operated={operated} onFilter={(next) => (filter.value = next)} />
        {operated.problem.value !== "" && (
          <p class="problem empty" role="status">
            {operated.problem.value}
          </p>
        )}
        <Tasks operated={operated} chosen={item} />
        {operated.more.value && filter.value.limit < maxTasks && (
          <p class="empty">
            <button
              type="button"
              class="small"
              onClick={() => (filter.value = { ...filter.value, limit: Math.min(maxTasks, filter.value.limit * 2) })}
            >
              Show more
            </button>
          </p>
        )}
      </section>
      {agent === undefined || item === undefined ? (
        <Overview
          counts={operated.counts.value}
          paused={operated.paused.value}
          nodes={operated.nodes.value}
          acts={operated.acts.value}
        />
      ) : (
        <Detail key={`${agent} ${item}`} agent={agent} taskId={item} />
      )}
      <Confirm />
    </div>
  );
}

const states = [
  "submitted",
  "working",
  "input_required",
  "auth_required",
  "completed",
  "failed",
  "canceled",
  "rejected",
];

interface FiltersProps {
  readonly filter: Filter;
  readonly operated: Operated;
  readonly onFilter: (filter: Filter) => void;
}

function Filters({ filter, operated, onFilter }: FiltersProps) {
  const selects = [
    {
      label: "State",
      value: filter.states,
      options: states.map((name) => [`TASK_STATE_${name.toUpperCase()}`, name.replace("_", " ")] as const),
      to: (states: string) => ({ states }),
    },
    {
      label: "Agent",
      value: filter.agent,
      options: (operated.counts.value?.agents ?? []).map(({ agent }) => [agent, agent] as const),
      to: (agent: string) => ({ agent }),
    },
    {
      label: "Node",
      value: filter.node,
      options: operated.nodes.value.map(({ name }) => [name, nodeWord(name)] as const),
      to: (node: string) => ({ node }),
    },
  ];
  return (
    <header>
      <input
        type="search"
        placeholder="Filter or task ID"
        aria-label="Filter"
        value={filter.text}
        onInput={({ currentTarget }) => onFilter({ ...filter, text: currentTarget.value.trim() })}
      />
      {selects.map(({ label, value, options, to }) => (
        <select
          key={label}
          aria-label={label}
          value={value}
          onChange={({ currentTarget }) => onFilter({ ...filter, ...to(currentTarget.value) })}
        >
          <option value="">{`any ${label.toLowerCase()}`}</option>
          {options.map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </select>
      ))}
      <select
        aria-label="Order"
        value={filter.order}
        onChange={({ currentTarget }) =>
          onFilter({ ...filter, order: currentTarget.value === "oldest" ? "oldest" : "newest" })
        }
      >
        <option value="newest">newest first</option>
        <option value="oldest">oldest first</option>
      </select>
      <label class="check">
        <input
          type="checkbox"
          checked={filter.suspended}
          onChange={({ currentTarget }) => onFilter({ ...filter, suspended: currentTarget.checked })}
        />
        suspended
      </label>
      {filter.owner !== "" && (
        <button type="button" class="small" dir="auto" onClick={() => onFilter({ ...filter, owner: "" })}>
          Owner {ownerWord(filter.owner)} ×
        </button>
      )}
      <a href={linkTo({ screen: "operate" })}>Agents and nodes</a>
    </header>
  );
}

function Tasks({ operated, chosen }: { readonly operated: Operated; readonly chosen: string | undefined }) {
  const { text } = filter.value;
  const tasks = operated.tasks.value?.filter(holds(text));
  if (tasks === undefined) return operated.problem.value === "" ? <p class="quiet empty">Loading …</p> : null;
  if (tasks.length === 0) {
    return (
      <div class="empty">
        <p class="quiet">No tasks match.</p>
        {text !== "" && <Find taskId={text} />}
      </div>
    );
  }
  return (
    <ol>
      {tasks.map((task) => (
        <Row key={`${task.agent} ${task.taskId}`} task={task} isChosen={task.taskId === chosen} />
      ))}
    </ol>
  );
}

function Row({ task, isChosen }: { readonly task: OperatedTask; readonly isChosen: boolean }) {
  const { agent, taskId, owner, node, statusTime } = task;
  const isSuspended = task.run?.suspended === true;
  const wait = waitWord(task);
  return (
    <li>
      <a
        class="task"
        href={linkTo({ screen: "operate", agent, item: taskId })}
        aria-current={isChosen ? "true" : undefined}
      >
        <span class="status" data-state={task.state} data-failed={isSuspended}>
          {isSuspended ? "suspended" : stateWord(task.state)}
        </span>
        <span class="clip">{taskId}</span>
        <span class="quiet" dir="auto">
          {wait !== undefined && `${wait} · `}
          {agent} · <Time at={statusTime} text={ageOf(statusTime)} />
          {node !== undefined && ` · on ${nodeWord(node)}`} · {ownerWord(owner)}
        </span>
      </a>
    </li>
  );
}

/** Searches the server for a task that is not on the page. */
function Find({ taskId }: { readonly taskId: string }) {
  const { problem, attempt } = useAttempt();
  const find = async (): Promise<void> => {
    const agent = await agentOf(taskId);
    if (agent === undefined) throw new Error(`No agent of the server has a task ${taskId}`);
    go({ screen: "operate", agent, item: taskId });
  };
  return (
    <>
      <button type="button" class="small" onClick={() => void attempt(find)}>
        Find the task with this ID
      </button>
      <Problem text={problem.value} />
    </>
  );
}

/** The state of a paused agent: since when, by which operator, and why. */
function Paused({ pause: { since, by, reason } = {} }: { readonly pause: Partial<PausedAgent> | undefined }) {
  return (
    <span dir="auto">
      paused
      {since !== undefined && (
        <>
          {" "}
          since <Time at={since} />
        </>
      )}
      {by !== undefined && ` by ${by}`}
      {reason !== undefined && `: ${reason}`}
    </span>
  );
}

interface OverviewProps {
  readonly counts: Counts | undefined;
  readonly paused: readonly PausedAgent[];
  readonly nodes: readonly OperatedNode[];
  readonly acts: readonly DoneAct[];
}

function Overview({ counts, paused: pauses, nodes, acts }: OverviewProps) {
  const { queue, runs, agents = [] } = counts ?? {};
  return (
    <section class="detail" aria-label="Agents and nodes" tabIndex={0}>
      <header>
        <h1>Agents and nodes</h1>
      </header>
      {queue !== undefined && runs !== undefined && (
        <p>
          Runs: {runs.count}, suspended: {runs.suspended}, waiting for a node: {runs.free}. Tasks in the queue:{" "}
          {queue.count}
          {queue.count > 0 && `, the oldest for ${Math.round(queue.oldestMs / 1000)} s`}.
        </p>
      )}
      <Table
        title="Agents"
        names={["Agent", "Tasks", "State", ""]}
        rows={agents.map(({ agent, states: by, paused }) => [
          agent,
          Object.entries(by)
            .map(([state, count]) => `${count} ${stateWord(state)}`)
            .join(", "),
          paused ? <Paused pause={pauses.find((each) => each.agent === agent)} /> : "active",
          <Act label={paused ? "Unpause" : "Pause"} on={agent} wish={paused ? unpause(agent) : pause(agent)} />,
        ])}
      />
      <Table
        title="Nodes"
        names={["Node", "Runs", "Silent for", "State", "Agents", ""]}
        rows={nodes.map(({ name, runs: own, silentMs, draining, self, gone, agents: served }) => [
          `${nodeWord(name)}${self ? " (this node)" : ""}`,
          `${own}`,
          silentMs === undefined ? "" : `${silentMs} ms`,
          [gone === true && "gone", draining && "draining"].filter(Boolean).join(", ") || "active",
          served?.join(", ") ?? "",
          <Act
            label={draining ? "Undrain" : "Drain"}
            on={nodeWord(name)}
            wish={{
              name: draining ? "undrain" : "drain",
              text: draining
                ? `Undrain node ${nodeWord(name)}? It starts turns again.`
                : `Drain node ${nodeWord(name)}? It starts no new turns.`,
              words: [name],
              inputs: { node: name },
            }}
          />,
        ])}
      />
      <Table
        title="Acts of operators"
        names={["Time", "Act", "On", "By", "Outcome", "Reason"]}
        rows={acts.map(({ time, act, agent = "", taskId = "", node, by = "-", outcome, reason = "" }) => [
          <Time at={time} />,
          act,
          node === undefined ? `${agent} ${taskId}` : nodeWord(node),
          by,
          outcome,
          reason,
        ])}
      />
    </section>
  );
}
