import { plain } from "../base/display.ts";
import type { Message, Part } from "../model/index.ts";
import {
  authorizationPart,
  readAuthorization,
  type AgentYield,
  type AuthorizationInit,
  type Credentials,
  type StatusEvent,
  type TurnBase,
} from "../protocol/index.ts";

/* Requests for an authorization, as events of an agent (A2A 1.0 §7.6). */

/** Without a word. */
export const working: StatusEvent = { kind: "status", state: "TASK_STATE_WORKING" };

/** The request that `parts` show. */
export function authRequired(parts: readonly Part[]): StatusEvent {
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

const mostTexts = 8;

/** The request of another agent for the own caller. A credential in a message would have to pass through this agent: only the link stays. */
export function passedOn(message: Message | undefined): readonly Part[] {
  const texts = (message?.parts ?? []).flatMap(({ text }) => (text === undefined ? [] : [{ text: plain(text, 2000) }]));
  const request = readAuthorization(message);
  if (request === undefined) return texts.length === 0 ? [{ text: "Another agent needs an authorization." }] : texts;
  const { inMessage: _, ...link } = request;
  return [...texts.slice(0, mostTexts), authorizationPart(link)];
}
