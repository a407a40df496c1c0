import { anyOf, bearer, mutualTls, oauth2 } from "@parley/a2a/auth";
import {
  A2AError,
  memoryStore,
  serve,
  type AgentCard,
  type Logger,
  type ServeOptions,
  type Server,
} from "@parley/node";
import { actsAgent } from "./agents/acts.ts";
import { tck03 } from "./agents/tck-0.3.ts";
import { configurations, tck10 } from "./agents/tck-1.0.ts";
import type { Kit } from "./expected.ts";

const logger: Logger = {
  debug() {},
  info() {},
  warn: (message, fields) => process.stderr.write(`${message} ${JSON.stringify(fields ?? {})}\n`),
  error: (message, fields) => process.stderr.write(`${message} ${JSON.stringify(fields ?? {})}\n`),
};

/** Two callers with access, and one without any. */
const authenticator = bearer((token) => {
  if (token === "weak") throw new A2AError("PermissionDenied");
  return token === "mine" || token === "theirs" ? { subject: token } : undefined;
});

/** The 0.3 kit checks every kind of scheme on the card. For the first one it sends a token that no issuer has signed. */
const login = "https://login.example.com";
const everyScheme = anyOf(
  authenticator,
  oauth2({
    issuer: login,
    metadataUrl: `${login}/.well-known/oauth-authorization-server`,
    flows: { clientCredentials: { tokenUrl: `${login}/token`, scopes: {} } },
    principal: (_, usual) => ({ ...usual, organization: login }),
  }),
  mutualTls({ names: { "DNS:caller.example.com": { subject: "caller" } } }),
);

function extendedCard(card: AgentCard): AgentCard {
  return { ...card, description: "For those we know." };
}

/** Serves the agent that a kit tests. `undefined` if there is no such configuration. */
export async function start(kit: Kit, configuration: string, port: number): Promise<Server | undefined> {
  // A run `strict` is the run `all` with `strictVersion`.
  const strictVersion = configuration === "strict";
  if (strictVersion) configuration = "all";
  // The kits judge all three bindings.
  const common: ServeOptions = { port, logger, store: memoryStore(), strictVersion };
  const options: ServeOptions = { ...common, grpc: true };
  switch (kit) {
    case "tck-1.0": {
      // The page has a column for the default options, which shows the effect of the options below.
      if (configuration === "defaults") return serve(tck10(configurations["all"] ?? {}), options);
      const isGuarded = configuration === "guarded";
      const capabilities = configurations[isGuarded ? "all" : configuration];
      if (capabilities === undefined) return undefined;
      // The kit sends many messages with one messageId, which a server with safe retries would deduplicate. The kit's card schema allows no
      // unknown fields, so a card with the fields of 0.3 and of 1.0 would not match.
      const own: ServeOptions = { ...options, dedupe: false, versions: ["1.0"] };
      if (isGuarded)
        return serve([{ agent: tck10(capabilities), extendedCard }], { ...own, push: true, authenticator });
      return serve(tck10(capabilities), { ...own, push: configuration === "all" });
    }
    case "tck-0.3":
      if (configuration !== "all" && configuration !== "guarded") return undefined;
      // This kit also sends many messages with one messageId. It expects a scheme in the gRPC address.
      const grpc = { url: `http://127.0.0.1:${port}` };
      if (configuration === "all") return serve(tck03(), { ...common, dedupe: false, grpc, push: true });
      return serve([{ agent: tck03(), extendedCard }], {
        ...common,
        dedupe: false,
        grpc,
        push: true,
        authenticator: everyScheme,
      });
    case "acts":
      if (configuration === "all") return serve(actsAgent(), { ...options, push: true });
      if (configuration === "none") return serve(actsAgent({ streaming: false }), options);
      if (configuration !== "guarded") return undefined;
      return serve([{ agent: actsAgent(), extendedCard }], { ...options, push: true, authenticator });
  }
}
