import type { AgentCard } from "@parley/a2a/internal/model/index";
import { A2AError, connect, type Client, type ConnectOptions, type FileFetch } from "@parley/a2a/internal/client/index";
import { defined } from "@parley/a2a/internal/base/defined";
import { isLoopback } from "@parley/a2a/internal/base/index";
import type { Observer } from "@parley/a2a/internal/protocol/index";
import { explain, UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { logTo } from "./output/text.ts";

/** Options of every command that calls an agent. */
export interface CallOptions {
  readonly token?: string;
  readonly header?: readonly string[];
  readonly credentialOrigin?: readonly string[];
  readonly extension?: readonly string[];
  readonly binding?: "JSONRPC" | "HTTP+JSON" | "GRPC";
  readonly json?: boolean;
  readonly verbose?: boolean;
}

/** Reads the agent's card and returns a client for it, with the credentials of the options or of a login. */
export async function open(
  io: Io,
  url: string,
  options: CallOptions,
  given: Pick<Given, "fetch" | "retry"> = {},
): Promise<Client> {
  const headers = callHeaders(options, io.env);
  const login = headers["authorization"] === undefined ? await loginFor(io, url) : undefined;
  return connectWith(io, url, options, { headers, ...login, ...given });
}

/** The credentials of a stored login for an agent, and the origins that they are for. */
async function loginFor(io: Io, url: string): Promise<Given | undefined> {
  // Loaded only on request, as the others are.
  const { Logins } = await import("./logins/logins.ts");
  const logins = Logins.of(io);
  const found = (await logins?.for(url)) ?? [];
  if (logins === undefined || found.length === 0) return undefined;
  const { storedProvider } = await import("./logins/providers.ts");
  return {
    credentials: await Promise.all(found.map((login) => storedProvider(logins, login))),
    credentialOrigins: found.flatMap(({ origins }) => origins),
  };
}

/** The headers of a stored login for an agent. For requests that no client makes. */
export async function loginHeaders(
  io: Io,
  url: string,
  options: CallOptions,
): Promise<Readonly<Record<string, string>>> {
  const login = await loginFor(io, url);
  if (login?.credentials === undefined) return {};
  const { card } = await connectWith(io, url, options, {});
  const headers: Record<string, string> = {};
  for (const provider of login.credentials) {
    for (const [name, scheme] of Object.entries(card.securitySchemes ?? {})) {
      const request = { name, scheme, scopes: [], card, resource: url };
      if (!provider.supports(request)) continue;
      Object.assign(headers, (await provider.credentials(request, { method: "POST", url })).headers);
    }
  }
  return headers;
}

/** What a call is authenticated with, the origins that get it beside those of the options, and how it is made. */
type Given = Pick<ConnectOptions, "headers" | "credentials" | "credentialOrigins" | "fetch" | "retry" | "timeout">;

/** The same with the credentials that are given, for a URL or a card. */
export async function connectWith(
  io: Io,
  agent: string | AgentCard,
  options: CallOptions,
  given: Given,
): Promise<Client> {
  // Loaded only on request: the tables of protobuf cost start-up time.
  const bindings = options.binding === "GRPC" ? [(await import("@parley/grpc/client")).grpcBinding()] : [];
  const logger = options.verbose === true ? await logTo(io, "debug", "text") : undefined;
  return connect(agent, {
    bindings,
    observer: tellingRetries(io, typeof agent === "string" ? agent : undefined),
    ...(io.retry !== undefined && { retry: io.retry }),
    ...given,
    credentialOrigins: [...(options.credentialOrigin ?? []), ...(given.credentialOrigins ?? [])],
    extensions: extensionsOf(options),
    ...defined({ binding: options.binding, logger }),
  });
}

/** Tells the user that the command waits for the agent, once for each outage. */
function tellingRetries(io: Io, url: string | undefined): Observer {
  return {
    retry({ attempt, error }) {
      if (attempt !== 1) return;
      const [first = ""] = explain(error, { ...(url !== undefined && { url }), program: io.program }).split("\n");
      io.stderr.write(`parley: ${first.replace(/:$/, "")}; retrying\n`);
    },
  };
}

/** The URIs of `--extension`. Throws UsageError for what no header can list. */
function extensionsOf({ extension: uris = [] }: CallOptions): readonly string[] {
  const wrong = uris.find((uri) => !/^[\x21-\x2b\x2d-\x7e]+$/.test(uri));
  if (wrong !== undefined)
    throw new UsageError(`--extension <uri> cannot be ${JSON.stringify(wrong)}: a URI has no commas and no spaces`);
  return uris;
}

/**
 * The headers of `--header`, and the token as `Authorization`. `tokenName`: what errors call the option of the token.
 * Throws UsageError where one is no valid header.
 */
export function callHeaders(
  options: Pick<CallOptions, "header" | "token">,
  env: Io["env"],
  tokenName = "--token <token>",
): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const text of options.header ?? []) {
    const [, name, value] = /^([!#$%&'*+.^`|~\w-]+):\s*((?:[!-~\xa1-\xff][\t -~\xa0-\xff]*)?)$/.exec(text) ?? [];
    if (name === undefined || value === undefined) {
      throw new UsageError(
        `--header <name: value> cannot be ${JSON.stringify(text)}: it is not "Name: value", in characters that a header may have (Latin-1)`,
      );
    }
    headers[name.toLowerCase()] = value;
  }
  const token = options.token ?? env["PARLEY_TOKEN"];
  if (token !== undefined && token !== "" && headers["authorization"] === undefined) {
    const name = options.token === undefined ? "PARLEY_TOKEN" : tokenName;
    if (!/^[\x21-\x7e]+$/.test(token)) throw new UsageError(`${name} holds characters that no header can carry`);
    headers["authorization"] = `Bearer ${token}`;
  }
  return headers;
}

/** Longest time to fetch one file, in milliseconds. */
const maxFetchMs = 6 * 3_600_000;

/** A fetch for the files of `--out`: those at the agent's own origin, and with `--fetch-urls` those at public addresses. */
export function fileFetchOf(client: Client, at: string, fetchUrls: boolean): FileFetch | undefined {
  return client.fileFetch(fetchUrls ? guarded(at) : refuse);
}

/** The agent chose the address: it must not lead into the user's network. Only an agent on this machine may link to this machine. */
function guarded(at: string): FileFetch {
  let fetch: Promise<FileFetch> | undefined;
  const load = async (): Promise<FileFetch> => {
    // Loaded only on request: the host loads the server as well.
    const [{ guardedFetch }, { nodeDialer }] = await Promise.all([
      import("@parley/a2a/internal/net/index"),
      import("@parley/node"),
    ]);
    const allowLoopback = isLoopback(new URL(at).hostname);
    return guardedFetch({ maxBytes: Number.MAX_SAFE_INTEGER, timeout: maxFetchMs, allowLoopback }, nodeDialer());
  };
  return async (url, init) => (await (fetch ??= load()))(url, init);
}

const refuse: FileFetch = (url) => {
  const why = "that is not the agent's own origin; pass --fetch-urls to save it";
  return Promise.reject(new A2AError("UnsupportedOperation", why, { metadata: { url } }));
};
