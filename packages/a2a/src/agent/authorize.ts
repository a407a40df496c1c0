import { plain } from "../base/display.ts";
import {
  A2AError,
  TaskFold,
  type Message,
  type Part,
  type SendMessageResponse,
  type StreamResponse,
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
  events: AsyncIterable<StreamResponse>,
): AsyncGenerator<AgentYield, SendMessageResponse, void> {
  let fold: TaskFold | undefined;
  let asked = false;
  for await (const event of events) {
    if (event.message !== undefined) return { message: event.message };
    if (event.task !== undefined) fold = new TaskFold(event.task);
    else (fold ??= begun(event)).apply(event);
    const status = event.task?.status ?? event.statusUpdate?.status;
    if (status === undefined) continue;
    const asks = status.state === "TASK_STATE_AUTH_REQUIRED";
    if (asks) yield authRequired(passedOn(status.message));
    else if (asked) yield working;
    asked = asks;
  }
  if (fold === undefined) throw new A2AError("InvalidResponse", "The other agent sent no event");
  return { task: fold.snapshot() };
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
