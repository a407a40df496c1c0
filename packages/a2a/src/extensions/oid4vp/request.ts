import { isLoopback, utf8Length } from "../../base/index.ts";
import { check, type JsonObject, type Message } from "../../model/index.ts";
import {
  isObject,
  object,
  optional,
  required,
  satisfying,
  string,
  strings,
  struct,
  type Schema,
} from "../../model/schema.ts";

/* What is asked for: an authorization request of OID4VP, in the metadata of a status message. */

/** The URI of the extension, and its key in metadata. */
export const oid4vpUri = "https://github.com/a2aproject/experimental-ext-oid4vp-auth/tree/main/v1";

/** An authorization request (OID4VP 1.0 §5). It has exactly one of `request_uri` and `request`. */
export interface Oid4vpRequest {
  /** Who asks: the client identifier of the verifier, which is also that of the request itself. */
  readonly client_id: string;
  /** Where the wallet gets the request, or what it is invoked with: an absolute URI, such as `https://…` or `openid4vp://…`. */
  readonly request_uri?: string;
  /** The request itself. */
  readonly request?: JsonObject;
}

/** Params of the extension on a card. */
export interface Oid4vpParams {
  /** The versions of OID4VP that the agent supports, such as `1.0`. */
  readonly oid4vpVersions: readonly string[];
}

/** What the metadata has. */
export interface Oid4vpMetadata {
  /** The request. */
  readonly authorizationRequest: Oid4vpRequest;
}

/** Most bytes of a request as JSON. It is kept in a row while its turn waits. */
const mostRequest = 16 << 10;

const anyObject: Schema<JsonObject> = struct;
const clientId = satisfying(
  string,
  "must be a text of 1 to 2048 characters",
  ({ length }) => length > 0 && length <= 2048,
);

const shape = object<Oid4vpRequest>({
  client_id: required(clientId),
  request_uri: optional(satisfying(string, "must be an absolute URI that a wallet can open", isWalletUri)),
  request: optional(satisfying(anyObject, "must have no request and no request_uri of its own (RFC 9101 §4)", isWhole)),
});

const oneOf = satisfying(shape, "must have exactly one of request_uri and request", isOneOf);
const oneClient = satisfying(oneOf, "must have the client_id that its request has", hasOneClient);

/** The rules of the extension: exactly one of two members, and one client identifier. */
const requestSchema: Schema<Oid4vpRequest> = satisfying(
  oneClient,
  `must not take more than ${mostRequest} bytes of JSON`,
  (request) => utf8Length(JSON.stringify(request)) <= mostRequest,
);

export const metadataSchema: Schema<Oid4vpMetadata> = object<Oid4vpMetadata>({
  authorizationRequest: required(requestSchema),
});

export const paramsSchema: Schema<Oid4vpParams> = object<Oid4vpParams>({ oid4vpVersions: required(strings) });

/** A browser or an operating system does something else with these than to open a wallet. */
const otherSchemes =
  /^(?:javascript|data|file|blob|filesystem|about|chrome|resource|jar|vbscript|wss?|s?ftp|view-source|intent|ms-.*|search|shell|smb|ssh|telnet|mailto|tel|sms):$/;

/** Whether a URI may be given to a wallet: of a web server with TLS, of this machine, or with a scheme of wallets. */
function isWalletUri(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (otherSchemes.test(protocol) || username + password !== "") return false;
  if (protocol === "https:") return true;
  if (protocol === "http:") return isLoopback(hostname);
  // What a wallet is invoked with may name a place as well.
  return new URL(text).searchParams.getAll("request_uri").every((at) => /^https?:/i.test(at) && isWalletUri(at));
}

/** Whether a request has all that it asks for in itself: `walletUrl()` would pass on a place that nobody has looked at. */
function isWhole(request: JsonObject): boolean {
  return request["request"] === undefined && request["request_uri"] === undefined;
}

function isOneOf({ request_uri: at, request }: Oid4vpRequest): boolean {
  return (at === undefined) !== (request === undefined);
}

/** Whether the request has the same client identifier, where it has one that can be seen: an `https:` URI is read by the wallet alone. */
function hasOneClient({ client_id: client, request_uri: at, request }: Oid4vpRequest): boolean {
  const others = at === undefined ? [request?.["client_id"]] : new URL(at).searchParams.getAll("client_id");
  return others.every((other) => other === undefined || other === client);
}

/** The request, where it is one. */
export function validRequest(value: unknown): Oid4vpRequest | undefined {
  const checked = check(requestSchema, value, "copy");
  return checked.ok ? checked.value : undefined;
}

/**
 * Reads the request from the message of a status with `TASK_STATE_AUTH_REQUIRED`. `undefined`: it has none, or one that breaks a rule of the
 * extension. A stranger wrote it: a wallet decides whom it trusts, by `client_id` and the signature of the request.
 *
 * @example
 * ```ts
 * const client = await connect("https://agents.example.com", { extensions: [oid4vp] });
 * const { task } = await client.sendMessage("Enrol me");
 * const request = readOid4vpRequest(task?.status.message);
 * if (request !== undefined) console.log(`${request.client_id} asks for a credential`);
 * ```
 */
export function readOid4vpRequest(message: Pick<Message, "metadata"> | undefined): Oid4vpRequest | undefined {
  const value = message?.metadata?.[oid4vpUri];
  return isObject(value) ? validRequest(value["authorizationRequest"]) : undefined;
}

/**
 * The URL that invokes a wallet with a request (OID4VP 1.0 §9): to be opened, or shown as a QR code.
 *
 * @param endpoint - The `authorization_endpoint` of the wallet. Default: the scheme that wallets have registered.
 *
 * @example
 * ```ts
 * const request = { client_id: "verifier", request_uri: "https://verifier.example.com/requests/1" };
 * const link = walletUrl(request, "https://wallet.example.com/authorize");
 * ```
 */
export function walletUrl(request: Oid4vpRequest, endpoint = "openid4vp://"): string {
  const { client_id: client, request_uri: at, request: parameters = {} } = request;
  // A URI with a scheme of wallets invokes one as it is: the public sample sends such.
  if (at !== undefined && !/^https?:/i.test(at)) return at;
  const query = new URLSearchParams({ client_id: client });
  if (at !== undefined) query.set("request_uri", at);
  for (const [name, value] of Object.entries(parameters)) {
    query.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return `${endpoint}${endpoint.includes("?") ? "&" : "?"}${query.toString()}`;
}
