import type { LogFields } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import {
  auditedSubject,
  taskFields,
  type ByteBudget,
  type DeliveryObservation,
} from "@parley/a2a/internal/protocol/index";
import { deliveryId } from "@parley/a2a/internal/webhooks/index";
import type { DueFeature, Room, TaskKey } from "../store/index.ts";
import type { TurnEnd } from "./circuit.ts";
import { ClaimedRow, type Change } from "./claimed-row.ts";
import { eventAgain, nextEvent, type EventSource, type Next, type PushEvent } from "./events.ts";
import { rememberLast } from "./keys.ts";
import type { DeliveredExtensions, OpenSecrets, OutboxHost, PushProblem, PushSigner, RefusedDelivery } from "./port.ts";
import {
  bodyOf,
  headersOf,
  originOf,
  post,
  resultOf,
  waitAfter,
  type Answer,
  type Post,
  type PushMessage,
  type WebhookCodec,
} from "./request.ts";
import { maxRefused, moved, nextAgain, type StoredConfig } from "./stored.ts";

/** Adds the observer's headers and the trace of this delivery to a request. */
function carrying(request: Request, { trace, headers }: Pick<DeliveryObservation, "trace" | "headers">): Request {
  if (trace === undefined && headers === undefined) return request;
  const { body } = request;
  return { body, headers: { ...headers, ...request.headers, ...(trace !== undefined && { traceparent: trace }) } };
}

/** Dependencies that all deliveries of a process share. */
export interface DeliveryContext
  extends
    Post,
    Pick<OutboxHost, "append" | "audit" | "blobs" | "extensionsOf" | "holders" | "logger" | "observer" | "store"> {
  readonly events: Omit<EventSource, "room">;
  /** Memory budget for the records that the steps read. */
  readonly budget: ByteBudget;
  readonly open: OpenSecrets;
  readonly signer: PushSigner;
  readonly codecOf: (version: string) => WebhookCodec;
  /** Waits between attempts, in milliseconds. */
  readonly waits: readonly number[];
  /** How long a request may take, in milliseconds. */
  readonly timeout: number;
  /** Whether the server is stopping, so that no more requests may begin. */
  readonly stopping: () => boolean;
}

/** How much longer a claim lasts than a request, in milliseconds. This is the time to read the event and to store the outcome. */
export const claimMargin = 40_000;

export interface Step extends TurnEnd {
  /** Whether there is more to do immediately. */
  readonly more: boolean;
}

interface Request {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

type About = Omit<PushMessage, "body">;
type Found = Extract<Next, { readonly kind: "event" }>;

const noExtensions: DeliveredExtensions = { uris: [], deliver: undefined };
const done: Step = { more: false };
const again: Step = { more: true };
const unwritten = "The server could not write the request; see its log";
const unread = "The server could not read the event; see its log";

/** The deliveries of one config, one after the other. Each step claims the row, posts at most one event, and stores the result. */
export class Delivery {
  readonly task: TaskKey;
  readonly configId: string;
  /** Approximate size of the config's row in bytes. */
  readonly bytes: number;
  readonly #context: DeliveryContext;
  readonly #row: ClaimedRow;
  readonly #open: OpenSecrets;
  /** The event that this step tries. */
  #event: PushEvent | undefined;

  constructor(context: DeliveryContext, row: DueFeature, config: StoredConfig) {
    this.#context = context;
    this.task = row.task;
    this.configId = row.key;
    this.bytes = row.value.length;
    this.#row = new ClaimedRow(context, row, config);
    this.#open = rememberLast(context.open);
  }

  get fields(): LogFields {
    const { agent, taskId } = this.task;
    const about = { agent, taskId, contextId: this.#contextId, trace: this.#event?.trace };
    return { ...taskFields(about), configId: this.configId, origin: originOf(this.#row.config.url) };
  }

  get #contextId(): string | undefined {
    if (this.#event === undefined) return undefined;
    const { task, message, statusUpdate, artifactUpdate } = this.#event.payload.value;
    return (task ?? message ?? statusUpdate ?? artifactUpdate)?.contextId;
  }

  /** Delivers at most one event. Rejects if the store fails. */
  async step(): Promise<Step> {
    const { budget, events } = this.#context;
    const { owner } = this.task;
    let reserved = 0;
    const give = (): void => {
      if (reserved > 0) budget.give(owner, reserved);
      reserved = 0;
    };
    const room: Room = {
      async reserve(bytes) {
        give();
        await budget.take(owner, bytes);
        reserved = bytes;
      },
    };
    try {
      const step = await this.#next({ ...events, room });
      this.#event = undefined;
      return step;
    } finally {
      give();
    }
  }

  /** Releases the row, which is then due after `wait` milliseconds. An unfinished attempt does not count. */
  async release(wait: number, change?: Change): Promise<void> {
    if (!this.#row.isClaimed && wait === 0) return;
    await this.#row.release(this.#row.now() + wait, change);
  }

  async #next(events: EventSource): Promise<Step> {
    const { config } = this.#row;
    const codec = this.#context.codecOf(config.version);
    const { sends } = codec.webhook;
    const refused = nextAgain(config);
    let next: Next;
    try {
      next =
        refused === undefined
          ? await nextEvent(events, this.task, config, sends)
          : await eventAgain(events, this.task, config, { seq: refused.seq, sends });
    } catch (error) {
      return this.#unreadable(error);
    }
    switch (next.kind) {
      case "gone":
        return done;
      case "again":
        return again;
      case "none": {
        const { position } = next;
        return this.#rest((each) => moved(each, position), position.cursor);
      }
      case "event":
        return this.#deliver(codec, next, refused);
    }
  }

  async #deliver(codec: WebhookCodec, next: Found, refused: RefusedDelivery | undefined): Promise<Step> {
    const { clock, holders, stopping } = this.#context;
    if (stopping()) return this.#pause(0);
    this.#event = next.event;
    if (!(await this.#claim())) return done;
    const { nonce, sequence: last, attempts = 0 } = this.#row.config;
    const { seq, generation, trace } = next.event;
    const sequence = refused?.sequence ?? last + 1;
    const id = deliveryId(nonce, sequence, seq);
    const contentType = codec.webhook.mediaType;
    const about = { id, sequence, attempt: attempts + 1, taskId: this.task.taskId, generation, trace, contentType };
    const request = await this.#prepare(codec, next, about);
    if (request === undefined) return this.#failed(this.#problem(unwritten), undefined);
    // If the process was suspended since then, another process may hold the row now.
    const maxAge = Math.min(holders?.fresh ?? Infinity, claimMargin / 2);
    if (this.#row.age > maxAge && !(await this.#claim())) return done;
    if (stopping()) return this.#pause(0);
    const since = clock.elapsed();
    const answer = await this.#post(request, about, seq);
    const took = clock.elapsed() - since;
    const step = await this.#settle(answer, next, refused);
    if (answer.kind === "aborted") return step;
    return { ...step, took, health: answer.kind === "failed" ? answer.health : "alive" };
  }

  /** Makes the request. `undefined`: its body cannot be written, or it cannot be signed. */
  async #prepare(codec: WebhookCodec, { event }: Found, about: About): Promise<Request | undefined> {
    const { signer, events, logger, blobs } = this.#context;
    const { config } = this.#row;
    try {
      const secrets = config.sealed === undefined ? {} : await this.#open(config.sealed, this.task, this.configId);
      const { uris, deliver } = await this.#extensions();
      const given = deliver === undefined ? event.payload : event.payload.map(deliver);
      const payload = blobs === undefined ? given : await blobs.linked(given, this.task);
      const body = bodyOf(codec, { ...event, payload }, events.bodyBytes);
      const headers = await headersOf(signer, this.#row.now(), config, secrets, { ...about, body });
      if (uris.length > 0) headers[codec.webhook.extensions] = uris.join(", ");
      return { body, headers };
    } catch (cause) {
      logger.error("Failed to write webhook", { ...this.fields, cause });
      return undefined;
    }
  }

  /** The extensions that were active in the request that registered the config (A2A 1.0 §4.6). */
  async #extensions(): Promise<DeliveredExtensions> {
    const { extensions = [] } = this.#row.config;
    return extensions.length === 0 ? noExtensions : this.#context.extensionsOf(this.task.agent, extensions);
  }

  async #post(request: Request, { attempt, trace }: About, seq: number): Promise<Answer> {
    const { agent, taskId } = this.task;
    const { url } = this.#row.config;
    const about = { agent, taskId, configId: this.configId, origin: originOf(url), seq, attempt, trace };
    const begun = this.#context.observer?.delivery?.(about);
    const { run, end, ...given } = typeof begun === "object" ? begun : { end: begun ?? undefined };
    const sent = (): Promise<Answer> => post(this.#context, this.#row.config, carrying(request, given));
    const answer = await (run === undefined ? sent() : run(sent));
    end?.(resultOf(answer));
    this.#audit(answer, trace);
    return answer;
  }

  /** Audits that a credential of the config or of the server was sent. */
  #audit({ kind }: Answer, trace: string | undefined): void {
    const { audit, clock } = this.#context;
    const { scheme, sealed } = this.#row.config;
    if (audit === undefined || kind === "aborted" || (scheme === undefined && sealed === undefined)) return;
    const { agent, taskId } = this.task;
    const outcome = kind === "delivered" ? "success" : "failed";
    const subject = auditedSubject({ taskId, contextId: this.#contextId, trace });
    audit({ event: "credential", outcome, time: clock.now(), agent, action: "push.deliver", ...subject });
  }

  async #settle(answer: Answer, next: Found, refused: RefusedDelivery | undefined): Promise<Step> {
    const { logger } = this.#context;
    switch (answer.kind) {
      case "aborted":
        return this.#pause(0);
      case "gone":
        logger.info("Webhook receiver gone (410); config deleted", this.fields);
        await this.#row.remove();
        return done;
      case "delivered":
        return refused === undefined ? this.#delivered(next) : this.#triedAgain(refused, undefined);
      case "failed":
      case "refused": {
        const { reason, status, kind } = answer;
        const problem = this.#problem(reason, status);
        // A refused event is not retried, so a webhook logs at most `maxRefused` lines until it is parked.
        if (kind === "refused") logger.info("Webhook receiver rejected event", { ...this.fields, reason });
        else logger.debug("Webhook delivery failed", { ...this.fields, reason });
        if (refused !== undefined) return this.#triedAgain(refused, problem);
        return kind === "failed" ? this.#failed(problem, answer.retryAfter) : this.#refused(problem, next);
      }
    }
  }

  #delivered(found: Found): Promise<Step> {
    return this.#advance(found, (config) => ({ ...config, delivered: config.delivered + 1 }));
  }

  #refused(problem: PushProblem, found: Found): Promise<Step> {
    if ((this.#row.config.refused ?? []).length >= maxRefused) return this.#park(problem);
    const { seq } = found.event;
    return this.#advance(found, ({ refused = [], ...config }) => ({
      ...config,
      refused: [...refused, { ...problem, seq, sequence: config.sequence }],
    }));
  }

  /** Moves the config past an event, and stores a change. */
  #advance({ position, last }: Found, change: Change): Promise<Step> {
    const advanced: Change = (config) => change({ ...moved(config, position), sequence: config.sequence + 1 });
    return last ? this.#rest(advanced, position.cursor) : this.#continue(advanced);
  }

  /** Stores the result of another attempt at a refused event. `problem`: why the attempt failed; `undefined` if it succeeded. */
  #triedAgain({ seq }: RefusedDelivery, problem: PushProblem | undefined): Promise<Step> {
    return this.#continue(({ again: wanted = [], refused = [], ...config }) => {
      const others = wanted.filter((each) => each !== seq);
      const left = refused.flatMap((each) => {
        if (each.seq !== seq) return [each];
        return problem === undefined ? [] : [{ seq, sequence: each.sequence, ...problem }];
      });
      return {
        ...config,
        delivered: config.delivered + (problem === undefined ? 1 : 0),
        ...(left.length > 0 && { refused: left }),
        ...(others.length > 0 && { again: others }),
      };
    });
  }

  #failed(problem: PushProblem, retryAfter: number | undefined): Promise<Step> {
    const attempts = (this.#row.config.attempts ?? 0) + 1;
    const wait = waitAfter(attempts, this.#context.waits, retryAfter, Math.random());
    if (wait === undefined) return this.#park(problem, attempts);
    return this.#pause(wait, (config) => ({ ...config, attempts, problem }));
  }

  async #unreadable(error: unknown): Promise<Step> {
    // The event is not the cause: the store is down, or the process has no memory for the task now.
    if (error instanceof A2AError && error.code === "Unavailable") throw error;
    this.#context.logger.error("Failed to read webhook events", { ...this.fields, cause: error });
    return this.#failed(this.#problem(unread), undefined);
  }

  async #park(problem: PushProblem, attempts?: number): Promise<Step> {
    const fields = { ...this.fields, reason: problem.reason };
    this.#context.logger.warn("Webhook parked; nothing is sent until an operator retries it", fields);
    await this.#row.park((config) => ({ ...config, ...(attempts !== undefined && { attempts }), problem }));
    return done;
  }

  /** Stores a change, and keeps the row for the next step. */
  async #continue(change: Change): Promise<Step> {
    if (this.#context.stopping()) return this.#pause(0, change);
    return (await this.#claim(change)) ? again : done;
  }

  /** Stores a change and releases the row, unless the log has newer records. `end`: the last `seq` that was read. */
  async #rest(change: Change, end: number): Promise<Step> {
    const outcome = await this.#row.release(undefined, change, end);
    if (outcome === "released") return nextAgain(this.#row.config) === undefined ? done : again;
    if (outcome === "lost") return done;
    if (this.#row.isClaimed) return this.#continue(change);
    this.#row.assume(change);
    return again;
  }

  async #pause(wait: number, change?: Change): Promise<Step> {
    await (change === undefined ? this.release(wait) : this.#row.release(this.#row.now() + wait, change));
    return done;
  }

  #claim(change?: Change): Promise<boolean> {
    return this.#row.hold(this.#context.timeout + claimMargin, change);
  }

  #problem(reason: string, status?: number): PushProblem {
    const at = this.#row.now();
    return status === undefined ? { at, reason } : { at, reason, status };
  }
}
