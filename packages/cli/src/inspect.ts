import { randomBytes } from "node:crypto";
import { apiKey } from "@parley/a2a/auth";
import { defined } from "@parley/a2a/internal/base/defined";
import { consoleRoutes, openInspector, type InspectorLogins } from "@parley/console";
import { serve, type Server } from "@parley/node";
import { callHeaders, loginHeaders, openRecorded, type CallOptions } from "./connection.ts";
import { CommandError } from "./errors.ts";
import type { Io } from "./io.ts";
import type { LoginUser } from "./login-oauth.ts";
import { complete, enter, loginsOf, loginTarget } from "./login.ts";
import { Logins } from "./logins/logins.ts";
import { alternatives, flowsOf, kindOf, type EnteredLogin, type NamedScheme } from "./logins/providers.ts";
import { print } from "./output/text.ts";

type SchemeLogin = Parameters<InspectorLogins["logIn"]>[1][number];
type LoginPage = Parameters<InspectorLogins["logIn"]>[2];
type SignInScheme = Awaited<ReturnType<InspectorLogins["of"]>>["ways"][number][number];

export interface InspectOptions extends CallOptions {
  readonly port: number;
  readonly open: boolean;
}

/** `parley inspect`. Returns the exit code. */
export async function inspect(io: Io, url: string | undefined, options: InspectOptions): Promise<number> {
  const token = randomBytes(24).toString("base64url");
  const held: { mounts?: Server["mounts"] } = {};
  const mounts = (): Server["mounts"] => {
    if (held.mounts === undefined) throw new CommandError("the console is not ready");
    return held.mounts;
  };
  const inspector = openInspector({
    open: (at, given) => openRecorded(io, at, { ...options, ...given }, given),
    credentials: async (at) => {
      const given = callHeaders(options, io.env);
      return given["authorization"] === undefined ? { ...(await loginHeaders(io, at, options)), ...given } : given;
    },
    ...defined({ logins: loginsFor(io, options) }),
    mounts: {
      add: (service) => mounts().add(service),
      replace: (service) => mounts().replace(service),
      remove: (path) => mounts().remove(path),
    },
  });
  const server = await serve([], {
    port: options.port,
    authenticator: apiKey({ [token]: { subject: "you" } }, { header: "x-parley-console" }),
    // A card may have been readable only by the user.
    cardReaders: "authenticated",
    routes: consoleRoutes({ inspector }),
    // No name but those of this machine: a page whose name resolves to it would be let in by its visitor's browser.
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
    print(io, options, { url: page }, (style) => `The console is ready at ${style("cyan", page)}\n`);
    if (options.open) await io.openPage(page).catch(() => {});
    await stopped;
  } finally {
    await server.close({ grace: 0 });
  }
  return 0;
}

/** The logins of `parley login`, for the console. `undefined` if the options have credentials, or no login can be stored. */
function loginsFor(io: Io, options: CallOptions): InspectorLogins | undefined {
  if (callHeaders(options, io.env)["authorization"] !== undefined || Logins.of(io) === undefined) return undefined;
  return {
    async of(url, card) {
      const stored = await loginsOf(io).for(url);
      const { securityRequirements: required = [] } = card;
      return {
        ways: alternatives(card).map((schemes) => schemes.map(described)),
        isRequired: required.length > 0 && required.every(({ schemes = {} }) => Object.keys(schemes).length > 0),
        logins: stored.map(({ scheme, account, since, secretsIn }) => ({
          scheme,
          since,
          secretsIn,
          ...defined({ account }),
        })),
      };
    },
    async logIn(url, given, page, signal) {
      const target = await loginTarget(io, url, options);
      const schemes = schemesNamed(alternatives(target.card), given);
      const entered: EnteredLogin[] = [];
      for (const [at, one] of given.entries()) {
        const { flow, clientId, issuer, username, scopes = "", secret = "" } = one;
        const scope = scopes.split(/\s+/).filter((text) => text !== "");
        const own = {
          scope,
          withSecret: secret !== "",
          ...defined({ flow, clientId, issuer, username }),
        };
        const scheme = schemes[at];
        if (scheme !== undefined)
          entered.push(await enter(onPage(page, one), target.url, scheme, { ...options, ...own }));
      }
      await complete(io, target, options, entered, signal);
      signal.throwIfAborted();
      for (const one of entered) await target.logins.save(one.login(), one.secrets());
    },
    async logOut(url) {
      const logins = loginsOf(io);
      for (const one of await logins.for(url)) await logins.remove(one);
    },
  };
}

function described({ name, scheme, scopes }: NamedScheme): SignInScheme {
  const kind = scheme.mtlsSecurityScheme === undefined ? (kindOf(scheme) ?? "unsupported") : "mutualTls";
  return { name, kind, scopes, flows: kind === "oauth2" ? flowsOf(scheme) : [] };
}

/** The combination of the card with exactly the schemes of a login, in its order. */
function schemesNamed(all: readonly (readonly NamedScheme[])[], given: readonly SchemeLogin[]): readonly NamedScheme[] {
  for (const schemes of all) {
    const found = given.flatMap(({ name }) => schemes.find((scheme) => scheme.name === name) ?? []);
    if (found.length === schemes.length && new Set(found).size === given.length) return found;
  }
  const names = given.map(({ name }) => JSON.stringify(name)).join(" and ");
  throw new CommandError(`no requirement of the card has exactly the schemes ${names}; reload the page`);
}

/** A user who has filled in the form of the console. */
function onPage({ openPage, showCode }: LoginPage, { name, secret = "" }: SchemeLogin): LoginUser {
  return {
    isRemote: false,
    async answer(_question, hidden) {
      if (hidden && secret !== "") return secret;
      throw new CommandError(`scheme ${JSON.stringify(name)} needs a ${hidden ? "secret" : "client ID or user name"}`);
    },
    openPage: async (url) => openPage(url),
    showCode,
  };
}
