import { utf8Length, type Clock, type Ids } from "@parley/a2a/internal/base/index";
import {
  A2AError,
  invalidParams,
  type FieldViolation,
  type TaskPushNotificationConfig,
} from "@parley/a2a/internal/model/index";
import { addressProblem } from "@parley/a2a/internal/net/index";
import { isWebhookSecret, mutualTlsScheme, standardWebhooksScheme } from "@parley/a2a/internal/webhooks/index";
import { featureBounds, type TaskKey } from "../store/index.ts";
import type { Sealer } from "./keys.ts";
import type { PushSettings } from "./port.ts";
import { isScheme, type FetchFor } from "./request.ts";
import type { StoredConfig } from "./stored.ts";

/* Checks a config before it is stored (A2A 1.0 §4.3.1, §13.2). */

/** A config that may be stored. Its secrets are sealed. */
export interface AcceptedConfig extends Pick<StoredConfig, "url" | "version" | "extensions" | "scheme" | "sealed"> {
  readonly id: string;
}

export interface GivenConfig {
  readonly config: TaskPushNotificationConfig;
  readonly task: TaskKey;
  /** The protocol version of the call. */
  readonly version: string;
  /** URIs of the extensions that are active in the call. */
  readonly extensions: readonly string[];
  /** The field path of the config in its request, with a trailing dot, for errors. Empty if the config is the whole request. */
  readonly path: string;
}

/** Dependencies of `acceptConfig`. */
export interface AcceptDeps {
  readonly settings: PushSettings;
  readonly sealer: Sealer;
  readonly challenge: Challenge;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** Rejects with `InvalidParams`, which names the invalid fields, or with `RequestTooLarge` for too many extensions. */
export async function acceptConfig(given: GivenConfig, deps: AcceptDeps): Promise<AcceptedConfig> {
  const { config, task, version, extensions, path } = given;
  const { settings, clock, challenge, ids, sealer } = deps;
  if (extensions.reduce((sum, uri) => sum + utf8Length(uri), 0) > maxBytes.extensions) {
    throw new A2AError(
      "RequestTooLarge",
      `The extension URIs of a webhook must not take more than ${maxBytes.extensions} bytes`,
    );
  }
  refuse(path, violationsOf(config, task, settings));
  const { url, authentication } = config;
  const scheme = authentication?.scheme;
  const problem = await addressProblem(url, settings.net, settings.dialer, clock);
  if (problem !== undefined) refuse(path, [{ field: "url", description: `must not be called: ${problem}` }]);
  if (settings.challenge && !(await challenge(url, scheme))) {
    refuse(path, [{ field: "url", description: "did not echo the challenge" }]);
  }
  const id = present(config.id) ?? ids.next();
  const [token, credentials] = [present(config.token), present(authentication?.credentials)];
  const hasSecrets = token !== undefined || credentials !== undefined;
  const sealed = hasSecrets ? await sealer.seal({ token, credentials }, task, id) : undefined;
  return { id, url, version, extensions: extensions.length > 0 ? extensions : undefined, scheme, sealed };
}

function refuse(path: string, violations: readonly FieldViolation[]): void {
  if (violations.length === 0) return;
  throw invalidParams(violations.map(({ field, description }) => ({ field: path + field, description })));
}

/** Protobuf does not distinguish absent from empty. */
function present(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}

/** Limits that let a sealed config and the outbox's data fit into a row. */
const maxBytes = { id: featureBounds.key, url: 2048, token: 1024, scheme: 64, credentials: 4096, extensions: 8192 };

function violationsOf(
  config: TaskPushNotificationConfig,
  { taskId }: TaskKey,
  settings: PushSettings,
): readonly FieldViolation[] {
  const { id, url, token, authentication } = config;
  const problems: (readonly [field: string, description: string | undefined])[] = [
    ["id", tooLong(id, maxBytes.id)],
    ["taskId", (present(config.taskId) ?? taskId) === taskId ? undefined : "is not the task of this message"],
    ["url", tooLong(url, maxBytes.url)],
    ["token", tooLong(token, maxBytes.token) ?? unfit(token)],
  ];
  if (authentication !== undefined) {
    const { scheme } = authentication;
    const credentials = present(authentication.credentials);
    problems.push(
      ["authentication.scheme", tooLong(scheme, maxBytes.scheme) ?? schemeProblem(scheme, url, settings)],
      [
        "authentication.credentials",
        tooLong(credentials, maxBytes.credentials) ?? unfit(credentials) ?? credentialsProblem(scheme, credentials),
      ],
    );
  }
  return problems.flatMap(([field, description]) => (description === undefined ? [] : [{ field, description }]));
}

function tooLong(text: string | undefined, bytes: number): string | undefined {
  return utf8Length(text ?? "") <= bytes ? undefined : `must not take more than ${bytes} bytes`;
}

/** Returns why a text cannot be a header value. HTTP implementations trim spaces, and a line break would start another header. */
function unfit(text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  const fits = /^[\x20-\x7e]+$/.test(text) && !text.startsWith(" ") && !text.endsWith(" ");
  return fits ? undefined : "must be visible ASCII characters, without spaces at the ends";
}

/** HTTP schemes whose credentials depend on each request, so they cannot be registered. */
const perRequest =
  "concealed digest dpop gnap hoba mutual negotiate privatetoken scram-sha-1 scram-sha-256 vapid".split(" ");

function schemeProblem(scheme: string, url: string, { mutualTls }: PushSettings): string | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(scheme)) return "is not the name of an HTTP authentication scheme";
  if (perRequest.includes(scheme.toLowerCase())) {
    return "is not supported: its credentials depend on each request";
  }
  if (!isScheme(scheme, mutualTlsScheme)) return undefined;
  if (mutualTls === undefined) return "is not supported: this server has no client certificate";
  return /^https:/i.test(url) ? undefined : "needs a url with https";
}

/** `Bearer` without credentials means that the server signs a JWT for each delivery. */
function credentialsProblem(scheme: string, credentials: string | undefined): string | undefined {
  const isMutualTls = isScheme(scheme, mutualTlsScheme);
  if (credentials === undefined) {
    return isMutualTls || isScheme(scheme, "Bearer") ? undefined : `are required for the scheme ${scheme}`;
  }
  if (isMutualTls) return "must be absent: the server uses its client certificate";
  if (isScheme(scheme, standardWebhooksScheme) && !isWebhookSecret(credentials)) {
    return "must be whsec_ and 24 to 64 random bytes in base64";
  }
  return undefined;
}

/** Whether the receiver at a URL echoes a challenge. Rejects with `Unavailable` if too many challenges are in progress. */
export type Challenge = (url: string, scheme: string | undefined) => Promise<boolean>;

/**
 * Sends `{"challenge":"…"}` by POST, which the receiver must echo. So a caller cannot register a URL of someone else (A2A 1.0 §13.2).
 * The request has no secrets, because someone else may receive it.
 */
export function challenges(fetchFor: FetchFor, maxRequests: number): Challenge {
  let running = 0;
  const isAnswered: Challenge = async (url, scheme) => {
    const challenge = crypto.randomUUID();
    const response = await fetchFor(scheme)(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ challenge }),
    });
    // Always read the body, which releases the connection.
    const text = await response.text();
    const answer: unknown = response.ok ? JSON.parse(text) : undefined;
    return typeof answer === "object" && answer !== null && "challenge" in answer && answer.challenge === challenge;
  };
  return async (url, scheme) => {
    if (running >= maxRequests) {
      throw new A2AError("Unavailable", "Too many webhook challenges are in progress", { retryAfter: 1 });
    }
    running += 1;
    // Omits the reason of a failure, which would tell the caller about networks that only the server can reach.
    return isAnswered(url, scheme)
      .catch(() => false)
      .finally(() => (running -= 1));
  };
}
