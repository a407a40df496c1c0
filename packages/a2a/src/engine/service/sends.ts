import type { SendMessageRequest } from "../../model/index.ts";
import type { AcceptedInput } from "../../extensions/index.ts";
import type { CallContext } from "../../protocol/index.ts";
import type { OnceRecord, Owner } from "../../store/index.ts";
import { type StoredCall, storedPrincipal } from "../log/index.ts";
import type { EngineSettings } from "../options.ts";
import { answered, type Admission, type Attempt, type Send, type SendRooms } from "./admission.ts";
import { checkSend, type CheckedAgent } from "./checks.ts";
import { FirstMessages } from "./first-messages.ts";
import { FollowUps } from "./follow-ups.ts";
import { Retries } from "./retries.ts";

/** Takes messages in, each once, as the first of a task or as the next of one. */
export class Sends {
  readonly #settings: EngineSettings;
  readonly #retries: Retries;
  readonly #firstMessages: FirstMessages;
  readonly #followUps: FollowUps;

  constructor(rooms: SendRooms) {
    this.#settings = rooms.settings;
    this.#retries = new Retries(rooms.settings);
    this.#firstMessages = new FirstMessages(rooms, this.#retries);
    this.#followUps = new FollowUps(rooms, this.#retries);
  }

  /** Throws or rejects when the message is refused. `extensions`: those that are active in this call. */
  accept(
    hosted: CheckedAgent,
    owner: Owner,
    request: SendMessageRequest,
    context: CallContext,
    extensions: readonly string[],
  ): Admission | Promise<Admission> {
    checkSend(hosted, request);
    const call = storedCall(hosted, request, context, extensions);
    const attempt = this.#retries.attempt(owner, request.message);
    const send: Send = { hosted, owner, request, call, principal: context.principal, attempt };
    return attempt === undefined ? this.#take(send) : this.#takeOnce(send, attempt);
  }

  /** Joins the same message where it came before. */
  #takeOnce(send: Send, attempt: Attempt): Admission | Promise<Admission> {
    const known = this.#retries.find(attempt);
    if (known !== undefined) return known;
    const { key, now } = attempt.once;
    this.#retries.begin(attempt);
    try {
      // What a store has at hand is not waited for: one more promise for each message is a fifth of its CPU.
      const found = this.#settings.store.once(send.owner, key, now);
      const admission = found instanceof Promise ? this.#takeLater(send, found) : this.#takeUnless(send, found);
      attempt.admission = admission instanceof Promise ? this.#orEnd(attempt, admission) : admission;
      return attempt.admission;
    } catch (error) {
      this.#retries.end(attempt);
      throw error;
    }
  }

  /** A message that is refused is not under way any more. */
  async #orEnd(attempt: Attempt, admission: Promise<Admission>): Promise<Admission> {
    try {
      return await admission;
    } catch (error) {
      this.#retries.end(attempt);
      throw error;
    }
  }

  async #takeLater(send: Send, found: Promise<OnceRecord | undefined>): Promise<Admission> {
    return this.#takeUnless(send, await found);
  }

  /** `found`: what the store knows of the same message. */
  #takeUnless(send: Send, found: OnceRecord | undefined): Admission | Promise<Admission> {
    if (found === undefined) return this.#take(send);
    this.#retries.end(send.attempt);
    return this.#retries.join(send.owner, found, send.attempt).then(answered);
  }

  /** A message that comes for the first time. */
  #take(send: Send): Admission | Promise<Admission> {
    const { request, call } = send;
    if (call.extensions.length === 0) return this.#admit(send);
    const { message, metadata } = request;
    const input: AcceptedInput = metadata === undefined ? { message } : { message, metadata };
    const { principal } = send;
    const accepted = this.#settings.extensions.accept(input, { principal, extensions: call.extensions });
    if (accepted === input) return this.#admit(send);
    if (accepted instanceof Promise) return accepted.then((later) => this.#admit(withInput(send, later)));
    return this.#admit(withInput(send, accepted));
  }

  #admit(send: Send): Admission | Promise<Admission> {
    return send.request.message.taskId === undefined ? this.#firstMessages.take(send) : this.#follow(send);
  }

  async #follow(send: Send): Promise<Admission> {
    const { agent, owner } = send.owner;
    const { taskId = "" } = send.request.message;
    const accepted = await this.#followUps.take(send, { agent, owner, taskId });
    this.#retries.end(send.attempt);
    return answered(accepted);
  }
}

/** The same send with what extensions have made of its message. */
function withInput(send: Send, { message, metadata }: AcceptedInput): Send {
  const { request, call } = send;
  return { ...send, request: { ...request, message }, call: { ...call, metadata } };
}

const none: readonly string[] = [];

function storedCall(
  { agent }: CheckedAgent,
  { configuration, metadata }: SendMessageRequest,
  { principal, version, trace }: CallContext,
  extensions: readonly string[],
): StoredCall {
  const call: StoredCall = {
    principal: storedPrincipal(principal, agent.keepClaims ?? none),
    version,
    extensions,
    acceptedOutputModes: configuration?.acceptedOutputModes ?? none,
    metadata,
  };
  return trace === undefined ? call : { ...call, trace };
}
