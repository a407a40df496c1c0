import {
  type A2AError,
  invalidParams,
  type JsonValue,
  type Message,
  type Part,
} from "@parley/a2a/internal/model/index";
import { authorizationMember, isAuthorizationAnswer, memberOf } from "@parley/a2a/internal/protocol/index";
import { createSeal, receiptOf, sealKeyring, type SealKeyring } from "../seal/index.ts";
import { answerCallback } from "./callback.ts";
import {
  audited,
  auditedContext,
  type Authorizations,
  type InTaskHost,
  type InTaskParts,
  type InTaskSettings,
  type TakenAnswer,
} from "./port.ts";
import { openRequest, Waits } from "./request.ts";
import { type Answer, answered, findRequest, isOpen, problemOf } from "./row.ts";

export function createAuthorizations(settings: InTaskSettings, host: InTaskHost): Omit<Authorizations, "isAwaited"> {
  let keyring: SealKeyring | undefined;
  // Created on first use, because it throws without keys.
  const seal = createSeal(() => (keyring ??= sealKeyring(settings.keys(), "parley authorization seal 1"))());
  const waits = new Waits(host);
  const parts = { settings, host, seal, waits };
  return {
    open: (init, turn) => openRequest(parts, init, turn),
    take: (message, answer) => takeAnswer(parts, message, answer),
    changed: (task) => waits.changed(task),
    callback: (request, bodies) => answerCallback(parts, request, bodies),
  };
}

/* A credential in a message (A2A 1.0 §7.6.3, 0.3 §4.5) is taken out before anything is stored. */

/** Takes the credential out of a message. `answer`: the part with the credential or the denial. */
export async function takeAnswer(parts: InTaskParts, message: Message, answer: Part): Promise<TakenAnswer> {
  const at = message.parts.indexOf(answer);
  const { id, credential, denied } = memberOf(answer) ?? {};
  const field = `message.parts[${at}].data`;
  if (message.taskId === undefined) throw refused(field, "requires message.taskId");
  if (typeof id !== "string") throw refused(`${field}.id`, "must be the id of the request");
  if (message.parts.filter(isAuthorizationAnswer).length > 1)
    throw refused(field, "must be the only answer of a message");
  if ((credential === undefined) === (denied !== true)) throw refused(field, "must have a credential, or denied: true");
  const member = credential === undefined ? { id, denied: true } : { id, received: await receipt(parts, credential) };
  const data = { data: { [authorizationMember]: member } };
  let contextId: string | undefined;
  return {
    message: { ...message, parts: message.parts.map((part) => (part === answer ? data : part)) },
    id,
    async effects(task) {
      const { host } = parts;
      const found = await findRequest(host.store, task, id);
      if (found === undefined || !isOpen(found, host.clock.now())) {
        throw refused(`${field}.id`, "must be the id of an open authorization request");
      }
      const { form, inMessage } = found.request;
      if (credential !== undefined && inMessage !== true) {
        throw refused(`${field}.credential`, "is not accepted in a message: open the link of the request");
      }
      const problem = credential === undefined ? undefined : problemOf(form, credential);
      if (problem !== undefined) throw refused(`${field}.credential`, problem);
      const value: Answer = credential === undefined ? { kind: "denied" } : { kind: "credential", value: credential };
      contextId = await auditedContext(parts.host, task);
      return [await answered(parts, task, found, value)];
    },
    stored(task) {
      const outcome = credential === undefined ? "refused" : "success";
      audited(parts.host, task, contextId, { action: "authorize.message", outcome });
      parts.waits.changed(task);
    },
  };
}

/** A retry has the same receipt; a message with another credential has a different receipt. */
function receipt({ settings }: InTaskParts, credential: JsonValue): Promise<string> {
  return receiptOf(settings.keys()[0], "parley authorization receipt 1")(JSON.stringify(credential));
}

function refused(field: string, description: string): A2AError {
  return invalidParams([{ field, description }]);
}
