import { readAuthorization } from "@parley/a2a/internal/protocol/index";
import type { Client, Message, Task, TaskSnapshot, WatchedTask } from "@parley/a2a";
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { AgentEntry } from "../../src/api.ts";
import { Answer } from "../parts/answer.tsx";
import { useExpired } from "../parts/authorization.tsx";
import { Content } from "../parts/content.tsx";
import { Problem, useAttempt } from "../parts/form.tsx";
import { Results, State } from "../parts/task.tsx";
import { Time } from "../parts/time.tsx";
import { operators } from "../operate/api.ts";
import { linkTo, route, type Screen } from "../route.ts";
import { session } from "../server.ts";
import { answerTask, TaskList, waiting, watchTask, type ListedTask } from "../tasks.ts";

interface TasksProps {
  readonly agents: readonly AgentEntry[];
  /** `inbox`: only tasks that wait for the user. */
  readonly screen: Extract<Screen, "tasks" | "inbox">;
}

/** The user's tasks, and next to them the selected task. */
export function Tasks({ agents, screen }: TasksProps) {
  const { agent: agentId, item } = route.value;
  const ids = agents.map(({ id }) => id).join();
  const list = useMemo(() => new TaskList(agents, screen === "inbox" ? waiting : []), [ids, screen]);
  useEffect(() => list.follow(), [list]);
  const filter = useSignal("");
  const found = (list.tasks.value ?? []).filter(({ task }) => holds(task, filter.value));
  const chosen = agents.find(({ id }) => id === agentId);
  return (
    <div class="split">
      <section class="list" aria-label={screen === "inbox" ? "Questions" : "Tasks"}>
        <header>
          <input
            type="search"
            placeholder="Filter"
            aria-label="Filter"
            value={filter.value}
            onInput={({ currentTarget }) => (filter.value = currentTarget.value)}
          />
        </header>
        {list.problem.value !== "" && (
          <p class="problem" role="status">
            {list.problem.value}
          </p>
        )}
        {list.tasks.value !== undefined && found.length === 0 && (
          <p class="quiet empty">{screen === "inbox" ? "No task waits for you." : "There are no tasks."}</p>
        )}
        <ol>
          {found.map((one) => (
            <Row key={`${one.agent.id} ${one.task.id}`} listed={one} screen={screen} isChosen={one.task.id === item} />
          ))}
        </ol>
      </section>
      {chosen === undefined || item === undefined ? (
        <div class="empty">
          <h1>{screen === "inbox" ? "Inbox" : "Tasks"}</h1>
          <p class="quiet">Choose a task to see what it does.</p>
        </div>
      ) : (
        <TaskDetail key={`${chosen.id} ${item}`} agent={chosen} id={item} />
      )}
    </div>
  );
}

function holds({ id, contextId = "", status }: Task, filter: string): boolean {
  const wanted = filter.toLowerCase();
  const texts = [id, contextId, status.state, ...(status.message?.parts ?? []).map(({ text = "" }) => text)];
  return texts.some((text) => text.toLowerCase().includes(wanted));
}

interface RowProps {
  readonly listed: ListedTask;
  readonly screen: Screen;
  readonly isChosen: boolean;
}

function Row({ listed: { agent, task }, screen, isChosen }: RowProps) {
  const said = task.status.message?.parts.find(({ text }) => text !== undefined)?.text;
  const { state } = task.status;
  const isExpired = useExpired(
    state === "TASK_STATE_AUTH_REQUIRED" ? readAuthorization(task.status.message)?.expiresAt : undefined,
  );
  return (
    <li>
      <a
        class="task"
        href={linkTo({ screen, agent: agent.id, item: task.id })}
        aria-current={isChosen ? "true" : undefined}
      >
        {isExpired ? (
          <span class="status" data-failed="true">
            auth expired
          </span>
        ) : (
          <State state={state} />
        )}
        <span class="clip" dir="auto">
          {said ?? task.id}
        </span>
        <span class="quiet">
          {agent.card.name} · <Time at={task.status.timestamp} />
        </span>
      </a>
    </li>
  );
}

/** A live view of a task, with the user's actions. */
function TaskDetail({ agent, id }: { readonly agent: AgentEntry; readonly id: string }) {
  const opened = useSignal<{ readonly client: Client; readonly watched: WatchedTask } | undefined>(undefined);
  const snapshot = useSignal<TaskSnapshot | undefined>(undefined);
  const { problem, attempt } = useAttempt();
  useEffect(() => {
    let leave = (): void => {};
    let gone = false;
    void attempt(async () => {
      const found = await watchTask(agent, id);
      if (gone) return;
      opened.value = found;
      leave = found.watched.subscribe(() => (snapshot.value = found.watched.getSnapshot()));
    });
    return () => {
      gone = true;
      leave();
    };
  }, [agent.id, id]);
  const task = snapshot.value?.task;
  const error = problem.value === "" ? snapshot.value?.error?.message : problem.value;
  return (
    <section class="detail" aria-label="Task" tabIndex={0}>
      <header>
        <h1>{id}</h1>
        <a href={linkTo({ screen: "timeline", agent: agent.id, item: id })}>Timeline</a>
        {operators.value !== undefined && session.value?.mode === "server" && (
          <a href={linkTo({ screen: "operate", agent: agent.id, item: id })}>Operate</a>
        )}
        {task !== undefined && !ended(task) && (
          <button
            type="button"
            class="small"
            onClick={() => void attempt(async () => opened.value?.client.cancelTask(id))}
          >
            Cancel
          </button>
        )}
      </header>
      <Problem text={error} />
      {task === undefined ? (
        error === undefined && <p class="quiet">Loading …</p>
      ) : (
        <>
          <p>
            <State state={task.status.state} />
            <span class="quiet">
              {" "}
              <Time at={task.status.timestamp} /> · context {task.contextId}
            </span>
          </p>
          {before(task).map(({ messageId, role, parts }) => (
            <article key={messageId} class={role === "ROLE_USER" ? "sent" : "reply"} dir="auto">
              <Content parts={parts} />
            </article>
          ))}
          <Results task={task} />
          {waiting.includes(task.status.state) && (
            <Answer withText task={task} onAnswer={(parts) => attempt(() => answerTask(agent, task, parts))} />
          )}
        </>
      )}
    </section>
  );
}

/** The history without the status message. */
function before({ history = [], status }: Task): readonly Message[] {
  return history.filter(({ messageId }) => messageId !== status.message?.messageId);
}

function ended({ status }: Task): boolean {
  return /_(?:COMPLETED|FAILED|CANCELED|REJECTED)$/.test(status.state);
}
