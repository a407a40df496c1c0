import { defineAgent, memoryStore, silentLogger } from "@parley/a2a";
import type { Authenticator } from "@parley/a2a/auth";
import type { LoginRedirect } from "@parley/a2a/credentials";
import { serve, type Server, type ServeOptions } from "@parley/node";
import { onTestFinished } from "vitest";
import { browse } from "./logins.ts";
import { startProvider, type ProviderOptions, type TestProvider } from "./provider.ts";

/* What the tests of a client's credentials run against: a real provider, a real agent, and a user who logs in by a program. */

export async function started(options?: ProviderOptions): Promise<TestProvider> {
  const provider = await startProvider(options);
  onTestFinished(() => provider.close());
  return provider;
}

/** An agent that says who calls it, and with which scopes. */
export const whoAmI = defineAgent({
  name: "Mirror",
  description: "Says who calls",
  version: "1.0.0",
  skills: [],
  onMessage(turn) {
    const { subject, scopes = [] } = turn.principal;
    return turn.reply([subject, ...scopes].join(" "));
  },
});

/** Serves until the test is over. */
export async function serving(authenticator: Authenticator, more: Partial<ServeOptions> = {}): Promise<Server> {
  const store = memoryStore();
  const options = { port: 0, signals: false, store, authenticator, logger: silentLogger, ...more } as const;
  const server = await serve(whoAmI, options);
  onTestFinished(async () => {
    await server.close({ grace: 0 });
    await store.close();
  });
  return server;
}

export const bindings = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;

/** A user without a browser: the redirects of the provider are followed by a program. `pages`: what was opened. */
export function programRedirect(): LoginRedirect & { readonly pages: URL[]; closed: number } {
  const redirectUri = "http://127.0.0.1:9/callback";
  const redirect = {
    pages: [] as URL[],
    closed: 0,
    begin: async () => ({
      redirectUri,
      open: (page: URL) => {
        redirect.pages.push(page);
        return browse(page.href, redirectUri);
      },
      close: async () => void (redirect.closed += 1),
    }),
  };
  return redirect;
}

/** What an agent answered. */
export const answerOf = ({
  message,
}: {
  readonly message?: { readonly parts: readonly { readonly text?: string }[] };
}) => message?.parts[0]?.text;
