import { spawn } from "node:child_process";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

import process from "node:process";
import type { LoginRedirect, PendingLogin } from "@parley/a2a/credentials";
import { A2AError } from "@parley/a2a/model";
import { portOf } from "../listen.ts";

/** Options of `loopbackRedirect()`. */
export interface LoopbackRedirectOptions {
  /**
   * Opens a page for the user, or prints its URL. Default: the system's browser. The URL is `https`, or `http` on this machine. Do not pass
   * it to a shell.
   */
  readonly open?: (url: string) => void | Promise<void>;
  /** Port of the redirect. Default: a free one, which authorization servers allow for loopback addresses (RFC 8252 §7.3). */
  readonly port?: number;
  /** Path of the redirect. Default `/callback`. */
  readonly path?: string;
  /** Longest wait for the user, in milliseconds. Default 5 minutes. */
  readonly timeout?: number;
}

/**
 * Logs in a user with the browser of this machine: listens on a loopback address until the authorization server redirects the browser
 * there (RFC 8252 §7.3). For `authorizationCode()` of `@parley/a2a/credentials`.
 *
 * @example
 * ```ts
 * const credentials = [authorizationCode({ clientId: "cli", redirect: loopbackRedirect() })];
 * ```
 */
export function loopbackRedirect(options: LoopbackRedirectOptions = {}): LoginRedirect {
  return { begin: (signal) => beginLogin(options, signal) };
}

const page = (text: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>Login</title><p>${text}</p></html>`;

/** The page runs and loads nothing, cannot be framed, and does not send its address, which contains the code, as a referrer. */
const headers = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  connection: "close",
};

/** A server for the redirect. `answer` decides about each request. */
async function listen(port: number, answer: (request: IncomingMessage) => boolean): Promise<Server> {
  const server = createServer(
    { maxHeaderSize: 32_768, requestTimeout: 10_000 },
    (request, response: ServerResponse) => {
      const ours = answer(request);
      response.writeHead(ours ? 200 : 404, headers);
      response.end(page(ours ? "You can close this page and go back to the program." : "There is nothing here."));
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return server;
}

async function beginLogin(options: LoopbackRedirectOptions, signal: AbortSignal): Promise<PendingLogin> {
  const { open = openBrowser, port = 0, path = "/callback", timeout = 300_000 } = options;
  let state: string | undefined;
  let base = "";
  let settle: { resolve(url: URL): void; reject(error: Error): void } | undefined;
  const server = await listen(port, ({ method, url = "", headers: { host } }) => {
    if (method !== "GET" || `http://${host}` !== base || !URL.canParse(url, base)) return false;
    const back = new URL(url, base);
    // Any program on this machine can send requests here. Only the login page knows the state.
    if (back.pathname !== path || state === undefined || back.searchParams.get("state") !== state) return false;
    settle?.resolve(back);
    return true;
  });
  base = `http://127.0.0.1:${portOf(server)}`;
  const late = new Error(`Login timed out after ${Math.round(timeout / 1000)} seconds`);
  return {
    redirectUri: base + path,
    async open(target) {
      state = target.searchParams.get("state") ?? undefined;
      const back = new Promise<URL>((resolve, reject) => (settle = { resolve, reject }));
      const timer = setTimeout(() => settle?.reject(new A2AError("Unauthenticated", late.message)), timeout);
      const abort = (): void => settle?.reject(new A2AError("Aborted", "The login was aborted"));
      signal.addEventListener("abort", abort, { once: true });
      if (signal.aborted) abort();
      try {
        await Promise.race([open(target.href), back]);
        return await back;
      } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      }
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      // Browsers connect in advance, and any program on this machine can hold a connection open: do not wait for them.
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Programs that open a URL, by platform. The URL is one argument, and no shell reads it. */
const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/**
 * Opens a page in the system's browser.
 *
 * @param url - A URL of `https`, or of `http` on this machine. Do not pass other URLs from untrusted sources.
 * @throws A2AError `Unauthenticated` if the program that opens URLs cannot be started.
 */
export async function openBrowser(url: string): Promise<void> {
  const [command, ...given] = openers[process.platform] ?? ["xdg-open"];
  const child = spawn(command, [...given, url], { detached: true, stdio: "ignore" });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (cause) =>
      reject(new A2AError("Unauthenticated", `No browser could be opened by ${command}`, { cause })),
    );
  });
  child.unref();
}
