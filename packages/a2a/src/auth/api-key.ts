import { invalidParams } from "../model/index.ts";
import type { Principal, UniversalRequest } from "../protocol/index.ts";
import { challenge, problemParams } from "./challenge.ts";
import type { Authenticator } from "./port.ts";
import { defineScheme } from "./scheme.ts";
import { secretLookup } from "./secrets.ts";

/** Where an API key is sent, and how it is declared. At most one of `header`, `query` and `cookie`. */
export interface ApiKeyOptions {
  /** Name of the header that has the key. Over gRPC it is metadata. Default `x-api-key`. */
  readonly header?: string;
  /** Name of the parameter of the query that has the key. Proxies write addresses to their logs, and gRPC has no query. */
  readonly query?: string;
  /** Name of the cookie that has the key. Pages of other origins cannot use it. */
  readonly cookie?: string;
  /** Name of the scheme on the card. Default `apiKey`. */
  readonly name?: string;
  /** Description of the scheme on the card. Default: none. */
  readonly description?: string;
  /** The scopes that every caller needs: `Principal.scopes` must have them. Default: none. */
  readonly scopes?: readonly string[];
}

/** Returns the owner of a key, or `undefined` where the key is not valid. It may throw an `A2AError` such as `PermissionDenied`. */
export type VerifyKey = (
  key: string,
  request: UniversalRequest,
) => Promise<Principal | undefined> | Principal | undefined;

/** What a value of a header, a cookie or a parameter may be here. */
const keyPattern = /^[\x21-\x7e]+$/;

/** A name of a header or a cookie (RFC 9110 §5.6.2). */
const tokenPattern = /^[\w!#$%&'*+\-.^`|~]+$/;

/**
 * Authenticates callers by an API key (A2A 1.0 §4.5.2).
 *
 * @param keys - The owners by the hashes of their keys, as `hashKey()` and `parley key` make them, or by the keys themselves; or
 * a function that finds the owner of a key.
 * @throws A2AError `InvalidParams` where a key contains characters that cannot be sent, a hash is no hash, or an option is wrong.
 *
 * @example
 * ```ts
 * const keys = { "sha256:Oi1ZFHMxUFVYpsQFdQdLCMHTXdAWhYdPXZnRAQkS9q0=": { subject: "ada" } };
 * await serve(agent, { authenticator: apiKey(keys, { header: "x-api-key" }) });
 * ```
 */
export function apiKey(
  keys: Readonly<Record<string, Principal>> | VerifyKey,
  options: ApiKeyOptions = {},
): Authenticator {
  const { name = "apiKey", description, scopes } = options;
  const { location, parameter } = placeOf(options);
  const what = "an API key is made of printable ASCII characters without spaces";
  const find = typeof keys === "function" ? keys : secretLookup(keys, (key) => keyPattern.test(key), what);
  return defineScheme({
    name,
    scheme: {
      apiKeySecurityScheme: { location, name: parameter, ...(description !== undefined && { description }) },
    },
    scopes,
    isAmbient: location === "cookie",
    credentials: readers[location](parameter),
    verify: (key, request) => (keyPattern.test(key) ? find(key, request) : undefined),
    // There is no registered scheme for API keys, and a 401 must have a challenge (RFC 9110 §15.5.2).
    challenge: (_place, problem) => challenge("ApiKey", { in: location, name: parameter, ...problemParams(problem) }),
  });
}

type Location = "header" | "query" | "cookie";

function placeOf(options: ApiKeyOptions): { readonly location: Location; readonly parameter: string } {
  const { header, query, cookie } = options;
  const [given, another] = Object.entries({ header, query, cookie }).filter(([, name]) => name !== undefined);
  const [location, parameter] = (given ?? ["header", "x-api-key"]) as [Location, string];
  const isName = location === "query" ? parameter !== "" : tokenPattern.test(parameter);
  if (another === undefined && isName) return { location, parameter };
  const description = isName
    ? "is one of several places. Choose header, query or cookie"
    : "is not a name that can be sent";
  throw invalidParams([{ field: location, description }]);
}

type Reader = (request: UniversalRequest) => string | undefined;

/** Read a key. A key that is there twice is wrong: `""` is no key. */
const readers: Readonly<Record<Location, (name: string) => Reader>> = {
  header(name) {
    const lower = name.toLowerCase();
    return (request) => request.header(lower)?.trim() || undefined;
  },
  query(name) {
    return ({ url }) => {
      const mark = url.indexOf("?");
      return mark < 0 ? undefined : only(new URLSearchParams(url.slice(mark + 1)).getAll(name));
    };
  },
  cookie(name) {
    return (request) => {
      const header = request.header("cookie");
      if (header === undefined) return undefined;
      // HTTP/2 and some runtimes join several headers with a comma, which no value of a cookie has (RFC 6265 §4.1.1).
      const pairs = header.split(/[;,]/).map((pair) => pair.trim());
      return only(
        pairs.flatMap((pair) => (pair.startsWith(`${name}=`) ? [unquoted(pair.slice(name.length + 1))] : [])),
      );
    };
  },
};

function only([value, another]: readonly string[]): string | undefined {
  return another === undefined ? value || undefined : "";
}

function unquoted(value: string): string {
  return /^"[^"]*"$/.test(value) ? value.slice(1, -1) : value;
}
