import { isLoopback } from "@parley/a2a/internal/base/index";
import type { JsonObject, Message } from "@parley/a2a/internal/model/index";
import {
  isObject,
  object,
  optional,
  required,
  satisfying,
  type Schema,
  string,
  strings,
  struct,
} from "@parley/a2a/internal/model/schema";
import { atMost, fitting, text } from "../shared/values.ts";

/* Checks which links may invoke a wallet. Links are untrusted, so only known schemes pass. */

/** Schemes of wallets: OID4VP 1.0 §13.1.2, its profile HAIP 1.0, and ISO/IEC 18013-7 Annex B. */
const usualWalletSchemes: readonly string[] = ["openid4vp", "haip-vp", "mdoc-openid4vp"];

/** More schemes of wallets. */
export interface WalletSchemesOptions {
  /**
   * Schemes of known wallets, such as `com.example.wallet`, without the colon. Always allowed: `openid4vp`, `haip-vp`,
   * `mdoc-openid4vp`, `https:`, and `http:` on this machine. Default: no others.
   */
  readonly walletSchemes?: readonly string[];
}

/** Never schemes of wallets: they run code, read data, or lead to a web server. */
const neverSchemes =
  /^(?:javascript|vbscript|data|file|blob|filesystem|about|view-source|jar|https?|wss?|s?ftps?|intent|mailto|tel|sms)$/;

const schemeName = /^[a-z][a-z0-9+.-]{0,99}$/;

/** The characters of a URI (RFC 3986 §2), and no others, because programs treat spaces and backslashes differently. */
const uriText = /^[a-z][a-z0-9+.-]*:[\w\-.~:/?#[\]@!$&'()*+,;=%]+$/i;

/** Whether a URI leads to a web server with a host: `https:path` is relative in a page. */
function isWeb(text: string): boolean {
  return /^https?:\/\/[^/?#]/i.test(text);
}

/** The schemes that links to wallets may have. */
export class WalletSchemes {
  readonly #names: ReadonlySet<string>;

  /** @throws TypeError for a scheme that no wallet can have. */
  constructor({ walletSchemes = [] }: WalletSchemesOptions = {}) {
    for (const name of walletSchemes) {
      if (typeof name === "string" && schemeName.test(name) && !neverSchemes.test(name)) continue;
      throw new TypeError(`walletSchemes must be names of schemes such as com.example.wallet; got ${String(name)}`);
    }
    this.#names = new Set([...usualWalletSchemes, ...walletSchemes]);
  }

  /** Whether a wallet may get this URI: `https:`, `http:` on this machine, or a scheme of wallets. */
  opens(text: string): boolean {
    if (!this.invokes(text)) return false;
    if (isWeb(text)) return true;
    // A link is passed on unchanged, and only some wallets read a fragment.
    if (text.includes("#")) return false;
    // The parameters may name another URI.
    return new URL(text).searchParams.getAll("request_uri").every((at) => isWeb(at) && this.opens(at));
  }

  /** Whether a URI may be the endpoint of a wallet. */
  invokes(text: string): boolean {
    if (!uriText.test(text) || !URL.canParse(text)) return false;
    const { protocol, hostname, username, password } = new URL(text);
    if (username + password !== "") return false;
    if (protocol === "https:") return isWeb(text);
    if (protocol === "http:") return isWeb(text) && isLoopback(hostname);
    return this.#names.has(protocol.slice(0, -1));
  }
}

/* An OID4VP authorization request in the metadata of a status message. */

/** The URI of the extension, and its key in metadata. */
export const oid4vpUri = "https://github.com/a2aproject/experimental-ext-oid4vp-auth/tree/main/v1";

/** An authorization request (OID4VP 1.0 §5) with exactly one of `request_uri` and `request`. */
export interface Oid4vpRequest {
  /** Client identifier of the verifier, the same as in the request. */
  readonly client_id: string;
  /** The URL of the request, or a URI that invokes the wallet, such as `https://…` or `openid4vp://…`. */
  readonly request_uri?: string;
  /** The request itself. */
  readonly request?: JsonObject;
}

/** `params` of the extension on a card. */
export interface Oid4vpParams {
  /** Supported versions of OID4VP, such as `1.0`. */
  readonly oid4vpVersions: readonly string[];
}

/** The metadata of a status message. */
export interface Oid4vpMetadata {
  /** The request. */
  readonly authorizationRequest: Oid4vpRequest;
}

/** Largest request, in bytes of JSON. It is stored in a row while its turn waits. */
const maxRequest = 16 << 10;

const anyObject: Schema<JsonObject> = struct;

function schemaWith(schemes: WalletSchemes): Schema<Oid4vpRequest> {
  const shape = object<Oid4vpRequest>({
    client_id: required(text(2048)),
    request_uri: optional(
      satisfying(string, "must be an absolute URI that a wallet can open", (uri) => schemes.opens(uri)),
    ),
    request: optional(satisfying(anyObject, "must not contain request or request_uri (RFC 9101 §4)", isWhole)),
  });
  const oneOf = satisfying(shape, "must have exactly one of request_uri and request", isOneOf);
  const oneClient = satisfying(oneOf, "must have the same client_id as its request", hasOneClient);
  return atMost(maxRequest, oneClient);
}

/** The rules of the extension: exactly one of two members, one client identifier, and a link that a wallet can open. */
export function metadataSchema(schemes: WalletSchemes): Schema<Oid4vpMetadata> {
  return object<Oid4vpMetadata>({ authorizationRequest: required(schemaWith(schemes)) });
}

export const paramsSchema: Schema<Oid4vpParams> = object<Oid4vpParams>({ oid4vpVersions: required(strings) });

/** Whether a request is self-contained. Otherwise `walletUrl()` would pass on an unchecked URI. */
function isWhole(request: JsonObject): boolean {
  return request["request"] === undefined && request["request_uri"] === undefined;
}

function isOneOf({ request_uri: at, request }: Oid4vpRequest): boolean {
  return (at === undefined) !== (request === undefined);
}

/** Whether the request has the same client identifier, if it is visible. Only the wallet reads a request at an `https:` URI. */
function hasOneClient({ client_id: client, request_uri: at, request }: Oid4vpRequest): boolean {
  const others = at === undefined ? [request?.["client_id"]] : new URL(at).searchParams.getAll("client_id");
  return others.every((other) => other === undefined || other === client);
}

/** The checked request; `undefined` if invalid. */
export function validRequest(value: unknown, schemes: WalletSchemes): Oid4vpRequest | undefined {
  return fitting(schemaWith(schemes), value);
}

/**
 * Reads the request from the message of a status with `TASK_STATE_AUTH_REQUIRED`; `undefined` if it has none, or an
 * invalid one. It is untrusted: the wallet decides by `client_id` and the signature of the request.
 *
 * @param options - More schemes of wallets.
 *
 * @example
 * ```ts
 * const client = await connect("https://agents.example.com", { extensions: [oid4vp] });
 * const { task } = await client.sendMessage("Enrol me");
 * const request = readOid4vpRequest(task?.status.message);
 * if (request !== undefined) console.log(`${request.client_id} asks for a credential`);
 * ```
 */
export function readOid4vpRequest(
  message: Pick<Message, "metadata"> | undefined,
  options: WalletSchemesOptions = {},
): Oid4vpRequest | undefined {
  const value = message?.metadata?.[oid4vpUri];
  return isObject(value) ? validRequest(value["authorizationRequest"], new WalletSchemes(options)) : undefined;
}

/**
 * The URL that invokes a wallet with a request (OID4VP 1.0 §9), to open or show as a QR code.
 *
 * @param endpoint - The `authorization_endpoint` of the wallet. Default: the registered scheme. A fragment stays at the
 * end.
 * @param options - More schemes of wallets, also for the endpoint.
 * @throws TypeError for a request or an endpoint that is not allowed.
 *
 * @example
 * ```ts
 * const request = { client_id: "verifier", request_uri: "https://verifier.example.com/requests/1" };
 * const link = walletUrl(request, "https://wallet.example.com/authorize");
 * ```
 */
export function walletUrl(
  request: Oid4vpRequest,
  endpoint = "openid4vp://",
  options: WalletSchemesOptions = {},
): string {
  const schemes = new WalletSchemes(options);
  const valid = validRequest(request, schemes);
  if (valid === undefined) throw new TypeError("request must be a valid OID4VP request");
  if (!schemes.invokes(endpoint))
    throw new TypeError("endpoint must be the URI of a wallet, with an allowed scheme (walletSchemes)");
  const { client_id: client, request_uri: at, request: parameters = {} } = valid;
  // Such a URI already invokes a wallet, as in the public sample.
  if (at !== undefined && !isWeb(at)) return at;
  const query = new URLSearchParams({ client_id: client });
  if (at !== undefined) query.set("request_uri", at);
  for (const [name, value] of Object.entries(parameters)) {
    query.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  // A fragment is not part of the query (RFC 3986 §3.5).
  const [place = "", ...fragment] = endpoint.split("#");
  const link = `${place}${place.includes("?") ? "&" : "?"}${query.toString()}`;
  return fragment.length === 0 ? link : `${link}#${fragment.join("#")}`;
}
