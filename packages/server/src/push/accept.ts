import { type Clock, type Ids, utf8Length } from "@parley/a2a/internal/base/index";
import {
  A2AError,
  type FieldViolation,
  invalidParams,
  type TaskPushNotificationConfig,
} from "@parley/a2a/internal/model/index";
import { addressProblem } from "@parley/a2a/internal/net/index";
import { isWebhookSecret, mutualTlsScheme, standardWebhooksScheme } from "@parley/a2a/internal/webhooks/index";
import { featureBounds, type TaskKey } from "../store/index.ts";
import type { FetchFor } from "./request.ts";
import type { Sealer } from "./keys.ts";
import type { PushSettings } from "./port.ts";

/* The check of a config before it is stored, and what is stored of it (A2A 1.0 §4.3.1, §13.2). */

/** A config that may be stored. Its secrets are sealed. */
export interface AcceptedConfig {
  readonly id: string;
  readonly url: string;
  /** The version of the protocol that registered it. */
  readonly version: string;
  /** URIs of the extensions that are active in its deliveries. Absent: none. */
  readonly extensions?: readonly string[];
  readonly scheme?: string;
  readonly sealed?: string;
}

/** A config as it came. */
export interface GivenConfig {
  readonly config: TaskPushNotificationConfig;
  /** The task that it is for. */
  readonly task: TaskKey;
  /** The version of the protocol of the call. */
  readonly version: string;
  /** URIs of the extensions that are active in the call. */
  readonly extensions: readonly string[];
  /** The path of the config in its request, with a dot at the end: what errors name. Empty where it is the request. */
  readonly path: string;
}

/** What is needed to check a config. */
export interface AcceptHost {
  readonly settings: PushSettings;
  readonly sealer: Sealer;
  readonly challenges: Challenges;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** Rejects with `InvalidParams`, which names the fields that are wrong, and with `RequestTooLarge` for too many extensions. */
export async function acceptConfig(given: GivenConfig, host: AcceptHost): Promise<AcceptedConfig> {
  const { config, task, version, extensions, path } = given;
  const { settings, clock } = host;
  if (extensions.reduce((sum, uri) => sum + utf8Length(uri), 0) > most.extensions) {
    throw new A2AError("RequestTooLarge", `The URIs of the extensions of a webhook may take ${most.extensions} bytes`);
  }
  const violations = violationsOf(config, task, settings);
  refuse(path, violations);
  const { url } = config;
  const problem = await addressProblem(url, settings.net, settings.dialer, clock);
  if (problem !== undefined) refuse(path, [{ field: "url", description: `is refused: ${problem}` }]);
  if (settings.challenge && !(await host.challenges.isAnswered(url, config.authentication?.scheme))) {
    refuse(path, [{ field: "url", description: "did not answer the challenge with the same challenge" }]);
  }
  const id = present(config.id) ?? host.ids.next();
  const token = present(config.token);
  const credentials = present(config.authentication?.credentials);
  const scheme = config.authentication?.scheme;
  const secrets = { ...(token !== undefined && { token }), ...(credentials !== undefined && { credentials }) };
  return {
    id,
    url,
    version,
    ...(extensions.length > 0 && { extensions }),
    ...(scheme !== undefined && { scheme }),
    ...(Object.keys(secrets).length > 0 && { sealed: await host.sealer.seal(secrets, task, id) }),
  };
}

function refuse(path: string, violations: readonly FieldViolation[]): void {
  if (violations.length === 0) return;
  throw invalidParams(violations.map(({ field, description }) => ({ field: path + field, description })));
}

/** Protobuf has no difference between absent and empty. */
function present(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}

/** In bytes. Together with what the outbox notes they fit into a row, also after they were sealed. */
const most = { id: featureBounds.key, url: 2048, token: 1024, scheme: 64, credentials: 4096, extensions: 8192 };

function violationsOf(
  config: TaskPushNotificationConfig,
  { taskId }: TaskKey,
  settings: PushSettings,
): readonly FieldViolation[] {
  const violations: FieldViolation[] = [];
  const check = (field: string, description: string | undefined): void => {
    if (description !== undefined) violations.push({ field, description });
  };
  check("id", tooLong(config.id, most.id));
  check("taskId", (present(config.taskId) ?? taskId) === taskId ? undefined : "is not the task of this message");
  check("url", tooLong(config.url, most.url));
  check("token", tooLong(config.token, most.token) ?? unfit(config.token));
  const { authentication } = config;
  if (authentication === undefined) return violations;
  const { scheme } = authentication;
  const credentials = present(authentication.credentials);
  check("authentication.scheme", tooLong(scheme, most.scheme) ?? schemeProblem(scheme, config.url, settings));
  check(
    "authentication.credentials",
    tooLong(credentials, most.credentials) ?? unfit(credentials) ?? credentialsProblem(scheme, credentials),
  );
  return violations;
}

function tooLong(text: string | undefined, bytes: number): string | undefined {
  return utf8Length(text ?? "") <= bytes ? undefined : `must not take more than ${bytes} bytes`;
}

/** What every HTTP implementation transports unchanged: it removes spaces at the ends, and a line break would begin another header. */
function unfit(text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  const fits = /^[\x20-\x7e]+$/.test(text) && !text.startsWith(" ") && !text.endsWith(" ");
  return fits ? undefined : "must be visible ASCII characters, which a header can carry";
}

/** Schemes of HTTP whose credentials depend on a challenge of the receiver or on the request, so that no one can give them before. */
const perRequest: readonly string[] = [
  "concealed",
  "digest",
  "dpop",
  "gnap",
  "hoba",
  "mutual",
  "negotiate",
  "privatetoken",
  "scram-sha-1",
  "scram-sha-256",
  "vapid",
];

/** Schemes that need no credentials. `Bearer` without them asks for a JWT of the server. */
const withoutCredentials: readonly string[] = ["bearer", mutualTlsScheme.toLowerCase()];

function is(scheme: string, name: string): boolean {
  return scheme.toLowerCase() === name.toLowerCase();
}

function schemeProblem(scheme: string, url: string, { mutualTls }: PushSettings): string | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(scheme)) return "is not the name of an HTTP authentication scheme";
  if (perRequest.includes(scheme.toLowerCase())) {
    return "is not supported: its credentials depend on the single request";
  }
  if (!is(scheme, mutualTlsScheme)) return undefined;
  if (mutualTls === undefined) return "is not supported: this server has no client certificate";
  return /^https:/i.test(url) ? undefined : "needs a url with https";
}

function credentialsProblem(scheme: string, credentials: string | undefined): string | undefined {
  if (credentials === undefined) {
    return withoutCredentials.includes(scheme.toLowerCase()) ? undefined : `are required for the scheme ${scheme}`;
  }
  if (is(scheme, mutualTlsScheme)) return "must be absent: the client certificate of the server is used";
  if (is(scheme, standardWebhooksScheme) && !isWebhookSecret(credentials)) {
    return "must be whsec_ and 24 to 64 random bytes in base64";
  }
  return undefined;
}

/**
 * Asks receivers whether they want the events: each gets `{"challenge":"…"}` by POST and answers with the same. Nobody can then
 * register the address of somebody else (A2A 1.0 §13.2). The request has no secrets, because it may reach that somebody.
 */
export class Challenges {
  readonly #fetchFor: FetchFor;
  readonly #most: number;
  #running = 0;

  /** @param most - Most requests at a time. */
  constructor(fetchFor: FetchFor, most: number) {
    this.#fetchFor = fetchFor;
    this.#most = most;
  }

  /** Whether a receiver answers as it has to. Rejects with `Unavailable` where too many requests are under way. */
  async isAnswered(url: string, scheme: string | undefined): Promise<boolean> {
    if (this.#running >= this.#most) {
      throw new A2AError("Unavailable", "The server is asking too many other webhooks", { retryAfter: 1 });
    }
    this.#running += 1;
    try {
      return await this.#ask(url, scheme);
    } catch {
      // The reason stays here: it would tell the caller about networks that only the server sees.
      return false;
    } finally {
      this.#running -= 1;
    }
  }

  async #ask(url: string, scheme: string | undefined): Promise<boolean> {
    const challenge = crypto.randomUUID();
    const response = await this.#fetchFor(scheme)(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ challenge }),
    });
    // Read in any case, because the connection is released after that.
    const text = await response.text();
    const answer: unknown = response.ok ? JSON.parse(text) : undefined;
    return typeof answer === "object" && answer !== null && "challenge" in answer && answer.challenge === challenge;
  }
}
