import { isLoopback } from "../base/index.ts";
import { A2AError, type JsonObject, type JsonValue, type Message, type Part } from "../model/index.ts";
import { isObject } from "../model/schema.ts";

/* In-task authorization (A2A 1.0 §7.6, 0.3 §4.5): requests, credentials, and their form in messages. */

/** The member of a data part that contains an authorization request or its answer. */
export const authorizationMember = "urn:parley:extension:in-task-authorization:v1";

/** Options of every authorization request. */
interface AnyAuthorizationInit {
  /** The request and its reason, for a person: shown in the status message and on the page of the link. At most 2000 characters. */
  readonly reason: string;
  /** How long the request is open, in milliseconds. Default 10 minutes, at most one day. It also ends with the turn. */
  readonly lifetime?: number;
  /**
   * Allows a message to the task to contain the credential, which every agent in between can read (A2A 1.0 §7.6.3). Default false:
   * the server rejects such a message.
   */
  readonly inMessage?: boolean;
  /** Name of the request, unique in its task. Default: a generated name that is equal in resumed turns. */
  readonly id?: string;
}

/** Asks a person to agree: the link leads to a page with the reason and two buttons. */
export interface ApprovalInit extends AnyAuthorizationInit {
  /** Always `approval`. */
  readonly form: "approval";
}

/** Asks for a secret, such as an API key: the link leads to a page with one field. */
export interface SecretInit extends AnyAuthorizationInit {
  /** Always `secret`. */
  readonly form: "secret";
  /** Name of the field on the page. Default `Secret`. */
  readonly label?: string;
}

/** Lets another service deliver the credential: it posts `{"credential": …}` as JSON to a URL of this server. */
export interface CallbackInit extends AnyAuthorizationInit {
  /** Always `callback`. */
  readonly form: "callback";
  /** Makes the link that the person opens at the other service, from the callback URL. Default: the callback URL itself. */
  readonly link?: (callbackUrl: string) => string | Promise<string>;
}

/** Asks for tokens of an OAuth 2.0 server: the authorization code flow with PKCE (RFC 6749 §4.1, RFC 7636). */
export interface OAuthInit extends AnyAuthorizationInit {
  /** Always `oauth`. */
  readonly form: "oauth";
  /** The authorization server: its issuer, whose metadata is read (RFC 8414, OpenID Connect Discovery), or the metadata. */
  readonly server: string | OAuthServer;
  /** This agent's client id at that server. Its redirect URI is this server's callback. */
  readonly clientId: string;
  /** The client's secret. Absent: a public client. */
  readonly clientSecret?: string;
  /** Scopes to request, separated by spaces. */
  readonly scope?: string;
  /** The target resource of the token (RFC 8707). */
  readonly resource?: string;
  /** Further parameters of the authorization request, such as `prompt`. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Calls the server. Default: the `fetch` of the runtime. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/** An authorization server without discovery. */
export interface OAuthServer {
  /** Its issuer identifier. */
  readonly issuer: string;
  /** The endpoint that the person is sent to. */
  readonly authorizationEndpoint: string;
  /** The endpoint that exchanges the code. */
  readonly tokenEndpoint: string;
}

/** Options of `turn.authorize()`. */
export type AuthorizationInit = ApprovalInit | SecretInit | CallbackInit | OAuthInit;

/** Tokens of an OAuth 2.0 server. */
export interface OAuthTokens {
  /** The access token. */
  readonly accessToken: string;
  /** Its type, in lower case: `bearer`. */
  readonly tokenType: string;
  /** When it expires, in milliseconds since the Unix epoch. Absent: unknown. */
  readonly expiresAt?: number;
  /** Gets the next access token. */
  readonly refreshToken?: string;
  /** Granted scopes. Absent: the requested ones. */
  readonly scope?: string;
  /** The verified claims of the ID token, if the server sent one (OpenID Connect Core §2). */
  readonly claims?: JsonObject;
}

/** Result of `turn.authorize()`, by the requested form. */
export interface Credentials {
  /** The person agreed. */
  readonly approval: true;
  /** The secret. */
  readonly secret: string;
  /** The JSON that the other service posted. */
  readonly callback: JsonValue;
  /** The tokens. */
  readonly oauth: OAuthTokens;
}

/**
 * Thrown by `turn.authorize()`. If it is not caught, the task fails with the reason; for `message`, the turn ends, and the message starts the next
 * turn.
 *
 * @example
 * ```ts
 * try {
 *   yield* turn.authorize({ form: "approval", reason: "Pay 20 EUR to ACME?" });
 * } catch (error) {
 *   if (!(error instanceof AuthorizationNotGiven) || error.kind !== "denied") throw error;
 *   return turn.completed("Nothing was paid.");
 * }
 * ```
 */
export class AuthorizationNotGiven extends A2AError {
  /**
   * - `denied`: the person or the authorization server rejected it.
   * - `expired`: no answer arrived in time.
   * - `message`: the caller sent another message to the task.
   */
  readonly kind: "denied" | "expired" | "message";

  /** Created by the engine. Tests of agents may create one. */
  constructor(kind: AuthorizationNotGiven["kind"], message: string, options?: { readonly cause?: unknown }) {
    super("Aborted", message, options);
    this.kind = kind;
  }
}

/** An open request, whose row is stored. */
export interface OpenAuthorization<Form extends keyof Credentials = keyof Credentials> {
  /** The request that the caller sees. Equal in a resumed turn. */
  readonly shown: AuthorizationRequest;
  /** Resolves to the credential, once. Throws `AuthorizationNotGiven`, or `TurnAborted` when the turn is over. */
  credential(): Promise<Credentials[Form]>;
}

/** A request for an authorization, as a client reads it from a status message with `readAuthorization()`. */
export interface AuthorizationRequest {
  /** Names the request in its task. */
  readonly id: string;
  /** The kind of authorization. Other agents may have further kinds. */
  readonly form: string;
  /** The link that a person opens. Absent: no link. */
  readonly url?: string;
  /** When the request ends (ISO 8601, UTC). */
  readonly expiresAt?: string;
  /** Whether the credential may be sent in a message from `answerAuthorization()`. */
  readonly inMessage?: boolean;
}

/** An answer to a request, in a message. */
export type AuthorizationAnswer =
  | {
      /** The credential, in the form of the request. */
      readonly credential: JsonValue;
    }
  | {
      /** The person rejected the request. */
      readonly denied: true;
    };

/**
 * Reads the request from the message of a status with `TASK_STATE_AUTH_REQUIRED`; `undefined` if it has none. The URL is untrusted: show it
 * with its host, and never fetch it.
 */
export function readAuthorization(message: Pick<Message, "parts"> | undefined): AuthorizationRequest | undefined {
  for (const part of message?.parts ?? []) {
    const request = memberOf(part);
    if (request === undefined) continue;
    const { id, form, url, expiresAt, inMessage } = request;
    if (!isShort(id) || !isShort(form)) continue;
    return {
      id,
      form,
      ...(isLink(url) && { url }),
      ...(isShort(expiresAt) && !Number.isNaN(Date.parse(expiresAt)) && { expiresAt }),
      ...(inMessage === true && { inMessage }),
    };
  }
  return undefined;
}

/** Makes the message part that answers a request. Send it to the task, and only over a connection that you trust with the credential. */
export function answerAuthorization({ id }: Pick<AuthorizationRequest, "id">, answer: AuthorizationAnswer): Part {
  const given = "credential" in answer ? { credential: answer.credential } : { denied: true };
  return { data: { [authorizationMember]: { id, ...given } } };
}

/** The part of a status message that shows a request. */
export function authorizationPart(shown: AuthorizationRequest): Part {
  return { data: { [authorizationMember]: { ...shown } } };
}

/** The authorization data of a part; `undefined` for any other part. */
export function memberOf(part: Part): JsonObject | undefined {
  const { data } = part;
  const member = isObject(data) ? data[authorizationMember] : undefined;
  return isObject(member) ? member : undefined;
}

/** Whether a part contains a credential or a denial. */
export function isAuthorizationAnswer(part: Part): boolean {
  if (part.data === undefined) return false;
  const member = memberOf(part);
  return member !== undefined && ("credential" in member || "denied" in member);
}

function isShort(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= 500;
}

/** Whether a link may be shown: over TLS, or to this machine, and without credentials. */
export function isLink(value: unknown): value is string {
  if (typeof value !== "string" || value.length > 4096 || !URL.canParse(value)) return false;
  const { protocol, hostname, username, password } = new URL(value);
  if (username + password !== "") return false;
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}
