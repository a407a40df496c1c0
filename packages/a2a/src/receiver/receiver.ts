import { silentLogger, systemClock, utf8Length, type Clock, type Logger } from "../base/index.ts";
import { A2AError, toA2AError, wireErrors, type StreamResponse } from "../model/index.ts";
import { guardedFetch, type GuardedFetch } from "../net/index.ts";
import { ByteBudget, type UniversalRequest, type UniversalResponse } from "../protocol/index.ts";
import { toFetch } from "../transport/server/fetch.ts";
import { unfinishedBodies } from "../transport/server/unfinished.ts";
import type { RequestLimits } from "../transport/server/binding.ts";
import { requestedExtensions } from "../transport/server/context.ts";
import { bodyText, parseJson } from "../transport/server/request.ts";
import { errorHeaders, failureOf } from "../transport/server/response.ts";
import { encodeRestError } from "../wire/errors.ts";
import { webhookHeaders } from "../webhooks/index.ts";
import { challengeOf, checkReceiver, wrongOption, readEvent, taskOf, type BodyForms } from "./read.ts";
import { webhookMemory, Deliveries } from "./order.ts";
import type { WebhookDelivery, WebhookReceiver, WebhookReceiverOptions, WebhookTrust } from "./port.ts";
import { configOf, Tokens, type Addressee } from "./tokens.ts";
import { tokenOf, trusting, type Proof } from "./trust.ts";
import { withUpdates, waitByWebhook } from "./updates.ts";

const depth = 64;

/** Makes a receiver. `forms`: how bodies are read. */
export function createReceiver(options: WebhookReceiverOptions, forms: BodyForms): WebhookReceiver {
  const { url, token, client, logger = silentLogger, clock = systemClock } = options;
  checkReceiver(options);
  const accept: readonly WebhookTrust[] = [options.accept].flat();
  const entrance = new Entrance(options, accept, forms);
  const { tokens } = entrance;
  const handle = async (request: UniversalRequest): Promise<UniversalResponse> => {
    try {
      return await entrance.receive(request);
    } catch (thrown) {
      return failed(thrown, request, logger);
    }
  };
  const receiver: WebhookReceiver = {
    handle,
    fetch: toFetch(handle, undefined, logger),
    answers: (at) => entrance.answers(at),
    config: (init) => configOf(url, accept[0] as WebhookTrust, token, init),
    subscribe: (listener, reader = client) => tokens.subscribe({ listener, client: reader }),
    onUpdate: (source, listener, note) => withUpdates(receiver, source, listener, note),
    waitFor: (source, taskId, until, { signal } = {}, reading = {}) =>
      waitByWebhook({ clock, logger }, receiver, source, taskId, until, signal, reading),
    close: () => entrance.close(),
  };
  return receiver;
}

/** Checks each request and passes its event on. */
class Entrance {
  readonly tokens: Tokens;
  readonly #options: WebhookReceiverOptions;
  readonly #forms: BodyForms;
  readonly #clock: Clock;
  readonly #path: string;
  readonly #prove: ReturnType<typeof trusting>;
  readonly #limits: RequestLimits;
  readonly #deliveries: Deliveries;
  /** For bodies of unverified senders. A separate budget, because anyone can fill it and a key set may hang. */
  readonly #checking: ByteBudget;
  #requests = 0;
  #closing = false;

  constructor(options: WebhookReceiverOptions, accept: readonly WebhookTrust[], forms: BodyForms) {
    const { url, token, onEvent, client, clock = systemClock } = options;
    const { bodyBytes = 10 << 20, pendingBytes = 64 << 20, tolerance = 300_000 } = options;
    const budget = Math.max(pendingBytes, bodyBytes);
    const fetch = options.fetch ?? fetchKeySets(accept);
    this.#options = options;
    this.#forms = forms;
    this.#clock = clock;
    this.#path = pathOf(options);
    this.#prove = trusting(accept, { url, hasToken: token !== undefined, tolerance, clock, fetch });
    this.tokens = new Tokens(url, accept, token, onEvent && { listener: onEvent, client });
    this.#limits = { bodyBytes, depth, unfinished: unfinishedBodies(bodyBytes, undefined, clock) };
    this.#deliveries = new Deliveries(options.memory ?? webhookMemory(), budget);
    this.#checking = new ByteBudget(budget, clock);
  }

  answers(url: string): boolean {
    return pathWithin(url) === this.#path;
  }

  close(): Promise<void> {
    this.#closing = true;
    return this.#deliveries.idle();
  }

  async receive(request: UniversalRequest): Promise<UniversalResponse> {
    if (!this.answers(request.url)) {
      const cause = `The path of this receiver is ${this.#path}. If a proxy changes the path, set \`path\` to the path that arrives here`;
      throw new A2AError("MethodNotFound", "No webhooks are received here", { cause });
    }
    if (request.method !== "POST") throw new A2AError("MethodNotAllowed", "Webhooks are sent by POST");
    if (this.#closing) throw new A2AError("Unavailable", "This receiver is stopping", { retryAfter: 5 });
    const addressee = this.tokens.find(tokenOf(request));
    const body = await bodyText(request, this.#limits);
    const challenge = challengeOf(body);
    if (challenge !== undefined)
      return this.tokens.mayAnswer(addressee) ? challenge : refuse("The challenge has no valid token");
    const bytes = utf8Length(body);
    const proof = await this.#proved(request, body, bytes, addressee);
    if (addressee.kind === "closed") return gone;
    const target = this.tokens.target(addressee, proof.trust);
    const event = readEvent(parseJson(body, request, this.#limits, depth), this.#forms);
    const delivery = describe(request, proof, event);
    const { expects, url: receiver } = this.#options;
    if ((await expects?.(delivery.taskId)) === false)
      throw new A2AError("TaskNotFound", "This task is not expected here");
    const { id, place, sender } = proof;
    const handled = id === undefined ? undefined : { receiver, sender, id, ...place, at: this.#clock.now() };
    await this.#deliveries.handle({ event, delivery, sender, handled, ...target, bytes });
    return accepted;
  }

  /** Verifies the sender. A rewritten body cannot be verified, which is a mistake of this program, not of the sender. */
  async #proved(request: UniversalRequest, body: string, bytes: number, token: Addressee): Promise<Proof> {
    // Small bodies are still accepted while large bodies use all of the memory.
    const owner = String((this.#requests += 1));
    if (!this.#checking.tryTake(owner, bytes))
      throw new A2AError("Unavailable", "Too many webhooks are pending", { retryAfter: 1 });
    try {
      return await this.#prove({ header: (name) => request.header(name), body, token });
    } catch (cause) {
      if (request.rewritten !== true) throw cause;
      throw new A2AError("InternalError", undefined, { cause: new Error(parsedBefore, { cause }) });
    } finally {
      this.#checking.give(owner, bytes);
    }
  }
}

const parsedBefore =
  "A parser has read the body before the receiver, so its signature cannot be verified. Mount the receiver before parsers";

const accepted: UniversalResponse = { status: 204, headers: {} };

/** Makes the sender delete its config. */
const gone: UniversalResponse = { status: 410, headers: { "cache-control": "no-store" } };

function refuse(message: string): never {
  throw new A2AError("Unauthenticated", message);
}

function failed(thrown: unknown, request: UniversalRequest, logger: Logger): UniversalResponse {
  const error = toA2AError(thrown);
  const fields = { method: request.method, url: pathWithin(request.url) };
  const shown = failureOf(error, logger, fields, () => false);
  const status = wireErrors[shown.code].http;
  if (status < 500) logger.info("Webhook rejected", { ...fields, reason: shown.message, cause: shown.cause });
  const base = { "content-type": "application/json", "cache-control": "no-store" };
  return {
    status,
    headers: errorHeaders(base, shown, status === 405 ? "POST" : undefined),
    body: encodeRestError(shown),
  };
}

function describe(
  request: UniversalRequest,
  { trust, id, place, taskId }: Proof,
  event: StreamResponse,
): WebhookDelivery {
  const named = taskOf(event);
  if (taskId !== undefined && taskId !== named) throw new A2AError("Unauthenticated", "The JWT is for another task");
  const generation = countOf(request.header(webhookHeaders.generation));
  const attempt = countOf(request.header(webhookHeaders.attempt));
  const extensions = requestedExtensions(request);
  return {
    ...(id !== undefined && { id }),
    taskId: named,
    trust,
    ...(place !== undefined && { sequence: place.sequence }),
    ...(generation !== undefined && { generation }),
    ...(attempt !== undefined && { attempt }),
    ...(extensions.length > 0 && { extensions }),
  };
}

function countOf(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

function pathOf({ url, path }: WebhookReceiverOptions): string {
  if (!URL.canParse(url)) throw wrongOption("url", "must be an absolute URL");
  return path ?? new URL(url).pathname;
}

function pathWithin(url: string): string {
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}

/** The operator names the key sets, so they may be on this machine or in its network. */
function fetchKeySets(accept: readonly WebhookTrust[]): GuardedFetch {
  const urls = accept.flatMap((trust) =>
    "keySet" in trust ? [trust.keySet] : "jwt" in trust ? [trust.jwt.keySet] : [],
  );
  const allow = urls.filter((url) => URL.canParse(url)).map((url) => new URL(url).hostname);
  return guardedFetch({ allow, maxBytes: 64 << 10, timeout: 10_000 });
}
