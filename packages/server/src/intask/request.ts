import { A2AError } from "@parley/a2a/internal/model/index";
import {
  type AuthorizationInit,
  AuthorizationNotGiven,
  type AuthorizationRequest,
  type Credentials,
  isLink,
  type OpenAuthorization,
  taskFields,
} from "@parley/a2a/internal/protocol/index";
import { deleteRow, type TaskKey } from "../store/index.ts";
import { audited, type AuthorizingTurn, type InTaskHost, type InTaskParts } from "./port.ts";
import {
  boundTo,
  findRequest,
  type FoundRequest,
  inTaskFeature,
  makeToken,
  openAnswer,
  setRequest,
  type StoredRequest,
} from "./row.ts";
import { storedJson } from "@parley/a2a/internal/base/json";
import { deferred } from "@parley/a2a/internal/base/index";
import { defined } from "@parley/a2a/internal/base/defined";

/* A turn opens a request, and waits for its answer. */

const usualLifetime = 10 * 60_000;
const longestLifetime = 24 * 60 * 60_000;
const longestReason = 2000;

/** Opens a request, or finds the one that the turn opened before a restart. */
export async function openRequest<Init extends AuthorizationInit>(
  parts: InTaskParts,
  init: Init,
  turn: AuthorizingTurn,
): Promise<OpenAuthorization<Init["form"]>> {
  checkInit(init);
  const id = init.id === undefined ? turn.makeId() : `${turn.number}-${init.id}`;
  const found = await findRequest(parts.host.store, turn.task, id);
  const request = found?.request.form === init.form ? found.request : await newRequest(parts, init, turn, id);
  const shown = shownOf(id, request);
  if (!isLink(request.url)) {
    throw mistake("the link must be an https URL, or one of this machine. Is publicUrl an https URL?");
  }
  if (found?.request !== request) await turn.keep([setRequest(id, request)]);
  return {
    shown,
    credential: () => new Wait(parts, init, turn, id).credential() as Promise<Credentials[Init["form"]]>,
  };
}

async function newRequest(
  { settings, host, seal }: InTaskParts,
  init: AuthorizationInit,
  turn: AuthorizingTurn,
  id: string,
): Promise<StoredRequest> {
  const { task, principal, agentName } = turn;
  const nonce = crypto.randomUUID();
  const token = await makeToken(seal, { task, id, nonce });
  const callbackUrl = `${settings.url}?request=${token}`;
  const { subject, organization } = principal;
  const request: StoredRequest = {
    form: init.form,
    reason: init.reason,
    agent: agentName.slice(0, 200),
    asker: (organization === undefined ? subject : `${subject} (${organization})`).slice(0, 200),
    ...(init.form === "secret" && init.label !== undefined && { label: init.label.slice(0, 100) }),
    ...(init.inMessage === true && { inMessage: true }),
    expires: Math.floor(host.clock.now()) + (init.lifetime ?? usualLifetime),
    nonce,
    token,
    url: init.form === "callback" && init.link !== undefined ? String(await init.link(callbackUrl)) : callbackUrl,
    state: "open",
  };
  if (init.form !== "oauth") return request;
  const { authorizationUrl } = await import("./oauth.ts");
  const { url, verifier } = await authorizationUrl(init, { redirectUri: settings.url, state: token });
  return { ...request, target: url, verifier: await seal.seal(verifier, boundTo("verifier", task, nonce)) };
}

function shownOf(id: string, { form, url, expires, inMessage }: StoredRequest): AuthorizationRequest {
  return { id, form, url, expiresAt: new Date(expires).toISOString(), ...(inMessage === true && { inMessage }) };
}

/** A turn that waits for the answer to its request. */
class Wait {
  readonly #parts: InTaskParts;
  readonly #init: AuthorizationInit;
  readonly #turn: AuthorizingTurn;
  readonly #id: string;

  constructor(parts: InTaskParts, init: AuthorizationInit, turn: AuthorizingTurn, id: string) {
    this.#parts = parts;
    this.#init = init;
    this.#turn = turn;
    this.#id = id;
  }

  async credential(): Promise<unknown> {
    this.#turn.rest(true);
    let found: FoundRequest;
    try {
      found = await this.#answered();
    } finally {
      this.#turn.rest(false);
    }
    // Deleted before the agent gets the credential, so that it is never used twice.
    await this.#turn.keep([deleteRow(inTaskFeature, this.#id)]);
    return this.#credentialOf(found.request);
  }

  /** Resolves once the answer is in the row. */
  async #answered(): Promise<FoundRequest> {
    const { host, waits } = this.#parts;
    const { task, signal } = this.#turn;
    let deadline: number | undefined;
    for (;;) {
      const changed = deferred<void>();
      const ends = [waits.on(task, changed.resolve), onAbort(signal, changed.resolve)];
      try {
        const found = await findRequest(host.store, task, this.#id);
        if (signal.aborted) throw await this.#aborted();
        if (found === undefined) throw mistake("the task has no room for another row");
        // The wall clock may be set while the turn waits.
        deadline ??= host.clock.elapsed() + Math.min(this.#lifetime, found.request.expires - host.clock.now());
        const left = deadline - host.clock.elapsed();
        const problem = problemOf(found, left);
        if (problem !== undefined) throw await this.#notGiven(problem);
        if (found.request.state === "given") return found;
        ends.push(host.clock.after(Math.max(1, left), changed.resolve));
        await changed.promise;
      } finally {
        for (const end of ends) end();
      }
    }
  }

  get #lifetime(): number {
    return this.#init.lifetime ?? usualLifetime;
  }

  async #notGiven(kind: AuthorizationNotGiven["kind"]): Promise<AuthorizationNotGiven> {
    await this.#turn.keep([deleteRow(inTaskFeature, this.#id)]);
    if (kind === "expired") this.#audit("authorize.expired", "failed");
    return new AuthorizationNotGiven(kind, sentences[kind]);
  }

  /** Called when the turn has ended. Deletes its row, unless another process continues the turn. */
  async #aborted(): Promise<unknown> {
    const { reason } = this.#turn.signal;
    const resumes = reason === undefined || /^(?:shutdown|leaseLost|storeFailed)$/.test(reason.kind);
    const { host } = this.#parts;
    if (!resumes) {
      const item = { task: this.#turn.task, records: [], effects: [deleteRow(inTaskFeature, this.#id)] };
      await host.store.append([item]).catch((cause: unknown) => {
        const { contextId } = this.#turn;
        const about = taskFields({ ...item.task, contextId });
        host.logger.warn("Failed to delete authorization request", { ...about, cause });
      });
    }
    return reason;
  }

  async #credentialOf(request: StoredRequest): Promise<unknown> {
    const { seal, settings } = this.#parts;
    const { task } = this.#turn;
    const answer = await openAnswer(seal, task, request);
    this.#audit("authorize.received", "success");
    if (answer.kind === "credential") return answer.value;
    const init = this.#init;
    if (init.form !== "oauth") throw mistake("the stored answer is of another form");
    const verifier = await seal.open(request.verifier ?? "", boundTo("verifier", task, request.nonce), verifierJson);
    const { exchangeCode } = await import("./oauth.ts");
    try {
      return await exchangeCode(init, {
        redirectUri: settings.url,
        state: request.token,
        verifier,
        parameters: answer.parameters,
        signal: this.#turn.signal,
      });
    } catch (error) {
      this.#turn.signal.throwIfAborted();
      this.#audit("authorize.exchange", "failed");
      throw new AuthorizationNotGiven("denied", sentences.denied, { cause: error });
    }
  }

  #audit(action: string, outcome: "success" | "failed"): void {
    const { task, contextId, principal } = this.#turn;
    const { subject, organization } = principal;
    audited(this.#parts.host, task, contextId, { action, outcome, subject, ...defined({ organization }) });
  }
}

const verifierJson = storedJson<string>();

/** Messages for the caller. */
const sentences = {
  denied: "The authorization was refused.",
  expired: "The authorization was not given in time.",
  message: "The caller sent another message.",
} as const;

/** `left`: milliseconds until the request expires. An answer takes precedence over a message, and a message over expiry. */
function problemOf({ row, request }: FoundRequest, left: number): AuthorizationNotGiven["kind"] | undefined {
  if (request.state === "given") return undefined;
  if (request.state === "denied") return "denied";
  if (row.due !== undefined) return "message";
  return left <= 0 ? "expired" : undefined;
}

function onAbort(signal: AbortSignal, run: () => void): () => void {
  signal.addEventListener("abort", run, { once: true });
  return () => signal.removeEventListener("abort", run);
}

function mistake(text: string): A2AError {
  return new A2AError("InvalidAgentResponse", `turn.authorize(): ${text}`);
}

const forms: readonly string[] = ["approval", "secret", "callback", "oauth"] satisfies readonly (keyof Credentials)[];

/** JavaScript callers can pass anything. */
function checkInit({ form, reason, lifetime, id }: AuthorizationInit): void {
  if (!forms.includes(form)) throw mistake(`form must be one of ${forms.join(", ")}`);
  if (typeof reason !== "string" || reason.trim() === "" || reason.length > longestReason) {
    throw mistake(`reason must be a text of at most ${longestReason} characters`);
  }
  if (lifetime !== undefined && !(lifetime >= 1 && lifetime <= longestLifetime)) {
    throw mistake(`lifetime must be a number of milliseconds, at most ${longestLifetime}`);
  }
  if (id !== undefined && !/^[\w.:-]{1,100}$/.test(id)) throw mistake("id must be 1 to 100 letters, digits and .:_-");
}

type Looking = Pick<InTaskHost, "store" | "clock" | "logger" | "pollInterval">;

interface Timer {
  readonly clear: () => void;
}

/** Rows of one poll. */
const pageSize = 1000;

/**
 * The waiting turns of this process, by task. Changes of this process wake them immediately. For changes of other processes it polls the due
 * rows every `pollInterval`, once for all turns, and only while a turn waits.
 */
export class Waits {
  readonly #host: Looking;
  readonly #waiting = new Map<string, Set<() => void>>();
  /** The timer of the next poll. */
  #timer: Timer | undefined;

  constructor(host: Looking) {
    this.#host = host;
  }

  /** Calls `run` when something was stored for the task. The returned function stops this. */
  on(task: TaskKey, run: () => void): () => void {
    const name = nameOf(task);
    const waiting = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, waiting.add(run));
    this.#timer ??= this.#later();
    return () => {
      waiting.delete(run);
      if (waiting.size > 0 || this.#waiting.get(name) !== waiting) return;
      this.#waiting.delete(name);
      if (this.#waiting.size > 0) return;
      this.#timer?.clear();
      this.#timer = undefined;
    };
  }

  changed(task: TaskKey): void {
    for (const run of this.#waiting.get(nameOf(task)) ?? []) run();
  }

  #later(): Timer {
    const { clock, pollInterval } = this.#host;
    const timer: Timer = { clear: clock.after(pollInterval, () => void this.#poll(timer)) };
    return timer;
  }

  async #poll(timer: Timer): Promise<void> {
    const { store, logger } = this.#host;
    const agents = [...new Set([...this.#waiting.keys()].map((name) => name.slice(0, name.indexOf("\0"))))];
    try {
      for (let after: number | undefined; ;) {
        const query = { feature: inTaskFeature, agents, now: Infinity, limit: pageSize };
        const rows = await store.dueFeatures(after === undefined ? query : { ...query, after });
        for (const { task } of rows) this.changed(task);
        if (rows.length < pageSize) break;
        after = rows.at(-1)?.due;
      }
    } catch (cause) {
      logger.warn("Authorization poll failed; retrying", { cause });
    }
    // Unless the last wait ended meanwhile, because a later wait has its own timer.
    if (this.#timer === timer) this.#timer = this.#later();
  }
}

/** No id contains NUL. */
function nameOf({ agent, taskId }: TaskKey): string {
  return `${agent}\0${taskId}`;
}
