import { plain } from "../base/display.ts";
import {
  A2AError,
  TaskFold,
  type Message,
  type Part,
  type SendMessageResponse,
  type StreamResponse,
  type Task,
} from "../model/index.ts";
import {
  authorizationPart,
  readAuthorization,
  type AgentEvent,
  type AgentYield,
  type AuthorizationInit,
  type Credentials,
  type TurnBase,
} from "../protocol/index.ts";

/* Requests for an authorization, as events of an agent (A2A 1.0 §7.6). */

const working: AgentEvent = { kind: "status", state: "TASK_STATE_WORKING" };

function authRequired(parts: readonly Part[]): AgentEvent {
  return { kind: "status", state: "TASK_STATE_AUTH_REQUIRED", message: { parts } };
}

/** Shows a request, waits for its answer, and goes on. */
export async function* authorize<Init extends AuthorizationInit>(
  turn: TurnBase,
  init: Init,
): AsyncGenerator<AgentYield, Credentials[Init["form"]], void> {
  const { shown, credential } = await turn.requestAuthorization(init);
  // Clients that know nothing of the part show the text.
  yield authRequired([{ text: `${init.reason}\n\nOpen this link: ${shown.url ?? ""}` }, authorizationPart(shown)]);
  const given = await credential();
  yield working;
  return given;
}

/** Follows the task of another agent, and passes its requests on (A2A 1.0 §7.6.2). */
export async function* follow(
  turn: TurnBase,
  events: AsyncIterable<StreamResponse>,
  subscribe?: (taskId: string) => AsyncIterable<StreamResponse>,
): AsyncGenerator<AgentYield, SendMessageResponse, void> {
  const followed = new Followed();
  for (let source = events; ;) {
    for await (const event of source) {
      if (event.message !== undefined) return { message: event.message };
      const change = followed.apply(event);
      if (change !== undefined) yield change;
    }
    const { task } = followed;
    if (subscribe === undefined || task.status.state !== "TASK_STATE_AUTH_REQUIRED") return { task };
    await new Promise<void>((resolve) => turn.clock.after(betweenStreams, resolve));
    turn.signal.throwIfAborted();
    source = subscribe(task.id);
  }
}

/** How long to wait before a stream is opened again that has ended at AUTH_REQUIRED, in milliseconds. */
const betweenStreams = 1000;

/** The task of another agent, and what its changes mean for this one. */
class Followed {
  #fold: TaskFold | undefined;
  /** The request that the own caller sees, as JSON. */
  #shown: string | undefined;

  get task(): Task {
    if (this.#fold === undefined) throw new A2AError("InvalidResponse", "The other agent sent no event");
    return this.#fold.snapshot();
  }

  /** Takes an event. Returns what to yield. */
  apply(event: Exclude<StreamResponse, { readonly message: Message }>): AgentEvent | undefined {
    if (event.task !== undefined) this.#fold = new TaskFold(event.task);
    else (this.#fold ??= begun(event)).apply(event);
    const status = event.task?.status ?? event.statusUpdate?.status;
    if (status === undefined) return undefined;
    const before = this.#shown;
    const parts = status.state === "TASK_STATE_AUTH_REQUIRED" ? passedOn(status.message) : undefined;
    this.#shown = parts && JSON.stringify(parts);
    if (parts === undefined) return before === undefined ? undefined : working;
    return before === this.#shown ? undefined : authRequired(parts);
  }
}

/** Some servers leave out the task at the beginning of a stream. */
function begun(event: Extract<StreamResponse, { task?: undefined; message?: undefined }>): TaskFold {
  const { taskId, contextId } = event.statusUpdate ?? event.artifactUpdate;
  return new TaskFold({ id: taskId, contextId, status: { state: "TASK_STATE_SUBMITTED" } });
}

const mostTexts = 8;

/** The request of another agent for the own caller. A credential in a message would have to pass through this agent: only the link stays. */
function passedOn(message: Message | undefined): readonly Part[] {
  const texts = (message?.parts ?? []).flatMap(({ text }) => (text === undefined ? [] : [{ text: plain(text, 2000) }]));
  const request = readAuthorization(message);
  if (request === undefined) return texts.length === 0 ? [{ text: "Another agent needs an authorization." }] : texts;
  const { inMessage: _, ...link } = request;
  return [...texts.slice(0, mostTexts), authorizationPart(link)];
}
