import { silentLogger, systemClock, utf8Length, type Logger } from "../base/index.ts";
import { A2AError, invalidParams, toA2AError, wireErrors, type StreamResponse } from "../model/index.ts";
import { guardedFetch, type GuardedFetch } from "../net/index.ts";
import { ByteBudget, type UniversalRequest, type UniversalResponse } from "../protocol/index.ts";
import { toFetch } from "../server/fetch.ts";
import { unfinishedBodies } from "../server/options.ts";
import type { RequestLimits } from "../transport/server/binding.ts";
import { bodyText, parseJson } from "../transport/server/request.ts";
import { errorHeaders, failureOf } from "../transport/server/response.ts";
import { encodeRestError } from "../wire/errors.ts";
import { webhookHeaders } from "../webhooks/index.ts";
import { challengeOf } from "./challenge.ts";
import { webhookMemory } from "./memory.ts";
import { Deliveries } from "./order.ts";
import type { WebhookDelivery, WebhookReceiver, WebhookReceiverOptions, WebhookTrust } from "./port.ts";
import { readEvent, taskOf, type BodyForms } from "./read.ts";
import { configOf, Tokens, type Addressee } from "./tokens.ts";
import { tokenOf, trusting, type Proof } from "./trust.ts";
import { withUpdates } from "./updates.ts";
import { waitByWebhook } from "./wait.ts";

const depth = 64;

/** Makes a receiver. `forms`: how bodies are read. */
export function createReceiver(options: WebhookReceiverOptions, forms: BodyForms): WebhookReceiver {
  const { token, onEvent, client, clock = systemClock, logger = silentLogger } = options;
  const { bodyBytes = 10 << 20, pendingBytes = 64 << 20, tolerance = 300_000 } = options;
  const path = pathOf(options);
  const accept = [options.accept].flat() as readonly WebhookTrust[];
  const prove = trusting(accept, {
    url: options.url,
    hasToken: token !== undefined,
    tolerance,
    clock,
    fetch: options.fetch ?? fetchKeySets(accept),
  });
  const tokens = new Tokens(options.url, accept, token, onEvent && { listener: onEvent, client });
  const limits: RequestLimits = { bodyBytes, depth, unfinished: unfinishedBodies(bodyBytes, undefined, clock) };
  const most = Math.max(pendingBytes, bodyBytes);
  const deliveries = new Deliveries(options.memory ?? webhookMemory(), most);
  // Of its own, because anyone can fill it. A key set may hang while it is read.
  const checking = new ByteBudget(most, clock);
  let requests = 0;
  let closing = false;

  const answers = (url: string): boolean => pathWithin(url) === path;

  async function receive(request: UniversalRequest): Promise<UniversalResponse> {
    if (!answers(request.url)) throw new A2AError("MethodNotFound", "No webhooks are received here");
    if (request.method !== "POST") throw new A2AError("MethodNotAllowed", "Webhooks are sent by POST");
    if (closing) throw new A2AError("Unavailable", "This receiver is stopping", { retryAfter: 5 });
    const addressee = await tokens.find(tokenOf(request));
    const body = await bodyText(request, limits);
    const challenge = challengeOf(body);
    if (challenge !== undefined)
      return tokens.mayAnswer(addressee) ? challenge : refuse("The challenge has no valid token");
    const bytes = utf8Length(body);
    // Small bodies still pass while large ones take all of the room.
    const place = String((requests += 1));
    if (!checking.tryTake(place, bytes))
      throw new A2AError("Unavailable", "Too many webhooks wait here", { retryAfter: 1 });
    const proof = await proved(request, body, addressee).finally(() => checking.give(place, bytes));
    if (addressee.kind === "closed") return gone;
    const target = tokens.target(addressee, proof.trust);
    const event = readEvent(parseJson(body, request, limits, depth), forms);
    const delivery = describe(request, proof, event);
    if ((await options.expects?.(delivery.taskId)) === false)
      throw new A2AError("TaskNotFound", "This task is not expected here");
    const { id } = proof;
    const handled = id === undefined ? undefined : { receiver: options.url, id, ...proof.place, at: clock.now() };
    await deliveries.handle({ event, delivery, handled, ...target, bytes });
    return accepted;
  }

  /** Who sent it. A body that is not what was sent cannot be verified: that is a mistake of this program, not of the sender. */
  async function proved(request: UniversalRequest, body: string, { kind }: Addressee): Promise<Proof> {
    const known = kind === "closed" ? "unknown" : kind;
    try {
      return await prove({ header: (name) => request.header(name), body, token: known });
    } catch (cause) {
      if (request.rewritten !== true) throw cause;
      throw new A2AError("InternalError", undefined, {
        cause: new Error(
          "A parser has read the body before the receiver, so its signature cannot be verified. Mount the receiver before parsers",
          { cause },
        ),
      });
    }
  }

  const handle = async (request: UniversalRequest): Promise<UniversalResponse> => {
    try {
      return await receive(request);
    } catch (thrown) {
      return failed(thrown, request, logger);
    }
  };
  const receiver: WebhookReceiver = {
    handle,
    fetch: toFetch(handle, undefined, logger),
    answers,
    config: (init) => configOf(options.url, accept[0] as WebhookTrust, token, init),
    subscribe: (listener, reader = client) => tokens.subscribe({ listener, client: reader }),
    onUpdate: (source, listener, note) => withUpdates(receiver, source, listener, note),
    waitFor: (source, taskId, until, { signal } = {}) => waitByWebhook(receiver, source, taskId, until, signal),
    close() {
      closing = true;
      return deliveries.idle();
    },
  };
  return receiver;
}

const accepted: UniversalResponse = { status: 204, headers: {} };

/** The sender deletes its config. */
const gone: UniversalResponse = { status: 410, headers: { "cache-control": "no-store" } };

function refuse(message: string): never {
  throw new A2AError("Unauthenticated", message);
}

function failed(thrown: unknown, request: UniversalRequest, logger: Logger): UniversalResponse {
  const error = toA2AError(thrown);
  const fields = { method: request.method, url: pathWithin(request.url) };
  const shown = failureOf(error, logger, fields, () => false);
  const status = wireErrors[shown.code].http;
  if (status < 500) logger.info("A webhook was refused", { ...fields, reason: shown.message, cause: shown.cause });
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
  return {
    ...(id !== undefined && { id }),
    taskId: named,
    trust,
    ...(place !== undefined && { sequence: place.sequence }),
    ...(generation !== undefined && { generation }),
    ...(attempt !== undefined && { attempt }),
  };
}

function countOf(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

/** The path of the receiver at this host. */
function pathOf({ url, path }: WebhookReceiverOptions): string {
  if (!URL.canParse(url)) throw invalidParams([{ field: "url", description: "must be an absolute URL" }]);
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
