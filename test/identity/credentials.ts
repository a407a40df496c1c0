import {
  defineAgent,
  memoryStore,
  serve,
  silentLogger,
  type Agent,
  type ServeOptions,
  type Server,
} from "@parley/node";
import type { Authenticator } from "@parley/a2a/auth";
import type { LoginRedirect } from "@parley/a2a/credentials";
import { onTestFinished } from "vitest";
import { browse } from "./logins.ts";
import { startProvider, type ProviderOptions, type TestProvider } from "./provider.ts";

/* The environment for tests of a client's credentials: a real provider, a real agent, and a program that logs in as the user. */

export async function started(options?: ProviderOptions): Promise<TestProvider> {
  const provider = await startProvider(options);
  onTestFinished(() => provider.close());
  return provider;
}

/** An agent that reports its caller and the caller's scopes. */
const whoAmI = defineAgent({
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
export async function serving(
  authenticator: Authenticator,
  more: Partial<ServeOptions> = {},
  agent: Agent = whoAmI,
): Promise<Server> {
  const store = memoryStore();
  const options = { port: 0, grpc: true, signals: false, store, authenticator, logger: silentLogger, ...more } as const;
  const server = await serve(agent, options);
  onTestFinished(async () => {
    await server.close({ grace: 0 });
    await store.close();
  });
  return server;
}

export const bindings = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;

/** A user without a browser: a program follows the provider's redirects. `pages`: the opened pages. */
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

/** The text of an agent's response. */
export const answerOf = ({
  message,
}: {
  readonly message?: { readonly parts: readonly { readonly text?: string }[] };
}) => message?.parts[0]?.text;

/** Acts like a user with a device code: opens the page, confirms, and logs in (RFC 8628 §3.3). Returns the last page. */
export async function approveDevice(page: string): Promise<string> {
  const cookies = new Map<string, string>();
  let next: { url: string; form?: URLSearchParams } = { url: page };
  for (let step = 0; step < 20; step += 1) {
    const { url, form } = next;
    const response = await fetch(url, {
      method: form === undefined ? "GET" : "POST",
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form !== undefined && { body: form }),
    });
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      cookies.set(name, value);
    }
    const text = await response.text();
    const location = response.headers.get("location");
    const action = /action="([^"]+)"/.exec(text)?.[1];
    if (location !== null) next = { url: new URL(location, url).href };
    else if (action === undefined) return text;
    else {
      const inputs = new URLSearchParams({ confirm: "yes" });
      for (const [, name = "", value = ""] of text.matchAll(/name="([^"]+)" value="([^"]*)"/g)) inputs.set(name, value);
      next = { url: new URL(action, url).href, form: inputs };
    }
  }
  throw new Error(`${page} does not end`);
}
