import { randomBytes } from "node:crypto";
import { apiKey } from "@parley/a2a/auth";
import { defined } from "@parley/a2a/internal/base/defined";
import { withoutSlashes } from "@parley/a2a/internal/base/index";
import { consoleRoutes, openInspector, type ConsoleOptions, type InspectorLogins } from "@parley/console";
import { serve, type Server } from "@parley/node";
import { callHeaders, loginHeaders, open, operatorToken, type CallOptions } from "./connection.ts";
import { CommandError, UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { complete, enter, loginsOf, loginTarget } from "./login.ts";
import { covers, Logins, loginUrl } from "./logins/logins.ts";
import { alternatives, flowsOf, kindOf, type EnteredLogin } from "./logins/providers.ts";
import { print } from "./output/text.ts";

export interface InspectOptions extends CallOptions {
  readonly port: number;
  readonly open: boolean;
  readonly operators?: string;
  readonly operatorsToken?: string;
  readonly webhooks?: boolean;
}

/** `parley inspect`. Returns the exit code. */
export async function inspect(io: Io, url: string | undefined, options: InspectOptions): Promise<number> {
  const token = randomBytes(24).toString("base64url");
  const webhooks = `/webhooks/${randomBytes(24).toString("base64url")}`;
  const held: { mounts?: Server["mounts"] } = {};
  const callerOf = callersFor(io, url, options);
  const inspector = openInspector({
    open: (at, given) => open(callerOf(at).io, at, { ...callerOf(at).options, ...given }, given),
    credentials: async (at) => {
      const { options: own, headers } = callerOf(at);
      return headers["authorization"] === undefined ? { ...(await loginHeaders(io, at, own)), ...headers } : headers;
    },
    ...defined({ logins: loginsFor(io, callerOf) }),
    get mounts() {
      if (held.mounts === undefined) throw new CommandError("the console is not ready");
      return held.mounts;
    },
  });
  const server = await serve([], {
    port: options.port,
    authenticator: apiKey({ [token]: { subject: "you" } }, { header: "x-parley-console" }),
    // The cards that the console shows may be readable only with the user's credentials.
    cardReaders: "authenticated",
    routes: [
      ...consoleRoutes({ inspector, ...defined({ operators: relayed(io, options) }) }),
      ...(options.webhooks === true ? [inspector.webhooks(webhooks)] : []),
    ],
    // Only names of this machine. Otherwise a web page could resolve its own name to this machine, and use the visitor's browser (DNS rebinding).
    allowedHosts: [],
    logger: options.verbose === true ? "debug" : "warn",
    signals: false,
  });
  held.mounts = server.mounts;
  try {
    const agent =
      url === undefined ? undefined : await inspector.connect({ url, ...defined({ binding: options.binding }) });
    const page = `${server.url}/console/#token=${token}${agent === undefined ? "" : `&agent=${agent.id}`}`;
    const stopped = new Promise<void>((done) => io.onInterrupt(() => done()));
    const received = options.webhooks === true ? `${server.url}${webhooks}` : undefined;
    print(
      io,
      options,
      { url: page, ...defined({ webhooks: received }) },
      (style) =>
        `The console is ready at ${style("cyan", page)}\n` +
        (received === undefined ? "" : `It shows webhooks that are sent to ${style("cyan", received)}\n`),
    );
    if (options.open) await io.openPage(page).catch(() => {});
    await stopped;
  } finally {
    await server.close({ grace: 0 });
  }
  return 0;
}

/** The options and headers for calls to the agent at a URL. */
type CallerOf = (at: string) => {
  readonly io: Io;
  readonly options: CallOptions;
  /** The headers of these options and this environment. */
  readonly headers: Readonly<Record<string, string>>;
};

/** The credentials of the command line are only for the agent that it names, because the page may also connect to hostile agents. */
function callersFor(io: Io, url: string | undefined, { token, header, ...rest }: InspectOptions): CallerOf {
  if (url === undefined && (token !== undefined || header !== undefined))
    throw new UsageError("--token and --header need the URL of the agent that receives them");
  const env = { ...io.env, PARLEY_TOKEN: undefined };
  const named = { io, options: { ...rest, ...defined({ token, header }) } };
  const other: typeof named = { io: { ...io, env }, options: rest };
  return (at) => {
    const caller = url !== undefined && covers(loginUrl(url), at) ? named : other;
    return { ...caller, headers: callHeaders(caller.options, caller.io.env) };
  };
}

/** Calls the operators' API of `--operators`, without the credentials for agents. */
function relayed(io: Io, { operators: url, operatorsToken: token }: InspectOptions): ConsoleOptions["operators"] {
  if (url === undefined) return undefined;
  const credentials = callHeaders(defined({ token }), io.env, {
    ...operatorToken,
    option: "--operators-token <token>",
  });
  const headers = { ...credentials, "content-type": "application/json" };
  return {
    url,
    ask: ({ method, path, body }) =>
      fetch(withoutSlashes(url) + path, {
        method,
        headers,
        redirect: "error",
        signal: AbortSignal.timeout(30_000),
        ...defined({ body }),
      }),
  };
}

/** The logins of `parley login`, for the console. `undefined` if no login can be stored. */
function loginsFor(io: Io, callerOf: CallerOf): InspectorLogins | undefined {
  if (Logins.of(io) === undefined) return undefined;
  return {
    async of(url, card) {
      if (callerOf(url).headers["authorization"] !== undefined) return undefined;
      return {
        ways: alternatives(card).map((schemes) =>
          schemes.map(({ name, scheme, scopes }) => {
            const isTls = scheme.mtlsSecurityScheme !== undefined;
            const kind = kindOf(scheme) ?? (isTls ? "mutualTls" : "unsupported");
            return { name, kind, scopes, flows: kind === "oauth2" ? flowsOf(scheme) : [] };
          }),
        ),
        logins: await loginsOf(io).for(url),
      };
    },
    async logIn(url, given, signal) {
      const { io: own, options } = callerOf(url);
      const target = await loginTarget(own, url, options);
      const schemes = alternatives(target.card).flat();
      const entered: EnteredLogin[] = [];
      for (const { name, user, options: asked } of given) {
        const scheme = schemes.find((one) => one.name === name);
        if (scheme !== undefined) entered.push(await enter(user, target.url, scheme, { ...options, ...asked }));
      }
      await complete(own, target, options, entered, signal);
      signal.throwIfAborted();
      for (const one of entered) await target.logins.save(one.login(), one.secrets());
    },
    async logOut(url) {
      for (const one of await loginsOf(io).for(url)) await loginsOf(io).remove(one);
    },
  };
}
