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

/** Connects to an agent with the credentials of the options, or of a stored login. Headers from the options take precedence. */
export async function open(
  io: Io,
  url: string,
  options: CallOptions,
  given: Pick<Given, "fetch" | "retry" | "interceptors"> & { readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Client> {
  const headers: Readonly<Record<string, string>> = { ...callHeaders(options, io.env), ...given.headers };
  const login = headers["authorization"] === undefined ? await loginFor(io, url) : undefined;
  return connectWith(io, url, options, { ...given, headers, ...login });
}

/** The credentials of a stored login for an agent, and their origins. */
async function loginFor(io: Io, url: string): Promise<Given | undefined> {
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

/** The headers of a stored login, for requests without a client. */
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

type Given = Pick<
  ConnectOptions,
  "headers" | "credentials" | "credentialOrigins" | "fetch" | "interceptors" | "retry" | "timeout"
>;

/** Connects to a URL or a card with the given credentials. */
export async function connectWith(
  io: Io,
  agent: string | AgentCard,
  options: CallOptions,
  given: Given,
): Promise<Client> {
  // Loaded only when needed, because the protobuf tables slow down the start.
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

/** Tells the user once per outage that the command is retrying. */
function tellingRetries(io: Io, url: string | undefined): Observer {
  return {
    retry({ attempt, error }) {
      if (attempt !== 1) return;
      const [first = ""] = explain(error, { ...(url !== undefined && { url }), program: io.program }).split("\n");
      io.stderr.write(`parley: ${first.replace(/:$/, "")}; retrying\n`);
    },
  };
}

/** The URIs of `--extension`. Throws UsageError for URIs that a header cannot list. */
function extensionsOf({ extension: uris = [] }: CallOptions): readonly string[] {
  const wrong = uris.find((uri) => !/^[\x21-\x2b\x2d-\x7e]+$/.test(uri));
  if (wrong !== undefined)
    throw new UsageError(`--extension <uri> must not contain commas or spaces; got ${JSON.stringify(wrong)}`);
  return uris;
}

const operatorVariable = "PARLEY_OPERATOR_TOKEN";

/** The option and the variable of an operator's token. Agents must not receive it, and operators' APIs must not receive tokens for agents. */
export const operatorToken: { readonly option: string; readonly variable: string } = {
  option: "--token <token>",
  variable: operatorVariable,
};

/** The headers of `--header`, and the token as `Authorization`. Throws UsageError for an invalid header. */
export function callHeaders(
  options: Pick<CallOptions, "header" | "token">,
  env: Io["env"],
  source: Partial<typeof operatorToken> = {},
): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const text of options.header ?? []) {
    const [, name, value] = /^([!#$%&'*+.^`|~\w-]+):\s*((?:[!-~\xa1-\xff][\t -~\xa0-\xff]*)?)$/.exec(text) ?? [];
    if (name === undefined || value === undefined) {
      throw new UsageError(`--header <name: value> must be "Name: value" in Latin-1; got ${JSON.stringify(text)}`);
    }
    headers[name.toLowerCase()] = value;
  }
  const { option = "--token <token>", variable = "PARLEY_TOKEN" } = source;
  const token = options.token ?? env[variable];
  if (token !== undefined && token !== "" && headers["authorization"] === undefined) {
    const name = options.token === undefined ? variable : option;
    if (!/^[\x21-\x7e]+$/.test(token))
      throw new UsageError(`${name} must consist of printable ASCII characters without spaces`);
    headers["authorization"] = `Bearer ${token}`;
  }
  return headers;
}

/** Timeout of one file, in milliseconds. */
const maxFetchMs = 6 * 3_600_000;

/** Fetches files for `--out` from the origin of the agent, and with `--fetch-urls` from public addresses. */
export function fileFetchOf(client: Client, at: string, fetchUrls: boolean): FileFetch | undefined {
  return client.fileFetch(fetchUrls ? guarded(at) : refuse);
}

/** The agent chose the address, so it must not lead into the user's network. Only a local agent may link to this machine. */
function guarded(at: string): FileFetch {
  let fetch: Promise<FileFetch> | undefined;
  const load = async (): Promise<FileFetch> => {
    // Loaded only when needed, because it also loads the server.
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
  const why = "it is on another origin than the agent; pass --fetch-urls to download it";
  return Promise.reject(new A2AError("UnsupportedOperation", why, { metadata: { url } }));
};
