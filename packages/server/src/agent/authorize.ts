import { plain } from "@parley/a2a/internal/base/display";
import type { Message, Part } from "@parley/a2a/internal/model/index";
import {
  authorizationPart,
  readAuthorization,
  type AgentMessage,
  type AgentYield,
  type AuthorizationInit,
  type Credentials,
  type StatusEvent,
  type TurnBase,
} from "@parley/a2a/internal/protocol/index";

/* Requests for an authorization, as events of an agent (A2A 1.0 §7.6). */

/** The working status, without a message. */
export const working: StatusEvent = { kind: "status", state: "TASK_STATE_WORKING" };

export function authRequired(message: AgentMessage): StatusEvent {
  return { kind: "status", state: "TASK_STATE_AUTH_REQUIRED", message };
}

/** Shows a request, waits for its answer, and returns it. */
export async function* authorize<Init extends AuthorizationInit>(
  turn: TurnBase,
  init: Init,
): AsyncGenerator<AgentYield, Credentials[Init["form"]], void> {
  const { shown, credential } = await turn.requestAuthorization(init);
  // For clients that do not know the part.
  const link = { text: `${init.reason}\n\nOpen this link: ${shown.url ?? ""}` };
  yield authRequired({ parts: [link, authorizationPart(shown)] });
  const given = await credential();
  yield working;
  return given;
}

const maxTexts = 8;
/** Maximum characters of metadata to pass on, as JSON. */
const maxMetadata = 64 << 10;

/**
 * Another agent's request, as shown to the caller of this agent. It has only the link, because a credential in a message would pass
 * through this agent. Metadata is unchanged, because extensions put their requests there.
 */
export function passedOn(message: Message | undefined): AgentMessage {
  const { metadata, extensions } = message ?? {};
  const fits = metadata !== undefined && JSON.stringify(metadata).length <= maxMetadata;
  return {
    parts: partsPassedOn(message),
    ...(fits && { metadata, ...(extensions !== undefined && { extensions }) }),
  };
}

function partsPassedOn(message: Message | undefined): readonly Part[] {
  const texts = (message?.parts ?? []).flatMap(({ text }) => (text === undefined ? [] : [{ text: plain(text, 2000) }]));
  const request = readAuthorization(message);
  if (request === undefined) return texts.length === 0 ? [{ text: "Another agent needs an authorization." }] : texts;
  const { inMessage: _, ...link } = request;
  return [...texts.slice(0, maxTexts), authorizationPart(link)];
}
