import type { HostedService } from "@parley/server/internal/server/options";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import {
  known,
  mountOf,
  onlyAda,
  ServedHost,
  talker,
  type ContractHost,
  type ContractHostOptions,
  type HostCases,
} from "./host/given.ts";
import { mountCases } from "./host/mount-cases.ts";
import { routeCases } from "./host/route-cases.ts";
import { declareCases, type Runner } from "./runner.ts";

export type { ContractHost, ContractHostOptions };

/** Options of the host contracts. */
export interface HostContractOptions {
  /**
   * Serves services over JSON-RPC and REST, with `createHost`, `serve` or a custom host. Pass the options to it unchanged. Each case
   * opens and closes its own host.
   */
  readonly serve: (mounts: readonly HostedService[], options: ContractHostOptions) => Promise<ContractHost>;
}

/**
 * Tests every rule of a host that serves services without an engine: cards, callers, streams, errors, limits, probes, closing.
 *
 * @example
 * ```ts
 * import { describe, it } from "node:test";
 *
 * serviceHostContract({ describe, it }, {
 *   serve: async (mounts, options) => {
 *     const server = await serve(mounts, { ...options, port: 0 });
 *     return { url: server.url, mounts: server.mounts, close: (closing) => server.close(closing) };
 *   },
 * });
 * ```
 */
export function serviceHostContract(runner: Runner, options: HostContractOptions): void {
  declare(runner, "a host of services", serviceCases, options);
}

/** Tests every rule of adding, replacing and removing agents while a host serves. */
export function mountsContract(runner: Runner, options: HostContractOptions): void {
  declare(runner, "mounts that change while the host serves", mountCases, options);
}

/** Tests every rule of an application's routes and pages on a host of agents. */
export function routesContract(runner: Runner, options: HostContractOptions): void {
  declare(runner, "routes of an application", routeCases, options);
}

function declare(runner: Runner, chapter: string, cases: HostCases, options: HostContractOptions): void {
  declareCases(runner, chapter, cases, (expect) => {
    const hosts: ContractHost[] = [];
    const serve = async (mounts: readonly HostedService[], own: ContractHostOptions = {}): Promise<ServedHost> => {
      const host = await options.serve(mounts, own);
      hosts.push(host);
      return new ServedHost(host);
    };
    return { given: { expect, serve }, close: () => Promise.all(hosts.map((host) => host.close({ grace: 0 }))) };
  });
}

/** Rules for services without an engine. */
const serviceCases: HostCases = {
  "the card has the mount's data, the host's addresses and credentials, and no other capabilities": async ({
    serve,
    expect,
  }) => {
    const host = await serve([mountOf(talker("A", { path: "/a" }))], { authenticator: onlyAda() });
    const answer = await host.fetch("/a/.well-known/agent-card.json", { headers: { "a2a-version": "1.0" } });
    const card = (await answer.json()) as AgentCard;
    const { name, capabilities, supportedInterfaces, securityRequirements = [] } = card;
    expect(name).toEqual("A");
    expect(capabilities).toEqual({ streaming: true });
    const urls = supportedInterfaces.map(({ url }) => url.startsWith(`${host.url}/a`));
    expect([urls.length > 0, urls.every(Boolean)]).toEqual([true, true]);
    expect(securityRequirements.length).toEqual(1);
  },

  "the service gets each call with its caller, over JSON-RPC and REST": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A", { path: "/a" }))], { authenticator: onlyAda() });
    expect(await host.reply("/a", "hello", known)).toEqual("A: hello (ada)");
    const message = { messageId: "m-1", role: "ROLE_USER", parts: [{ text: "over JSON-RPC" }] };
    const answer = await host.fetch("/a", {
      method: "POST",
      headers: { "content-type": "application/json", "a2a-version": "1.0", ...known },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } }),
    });
    expect((await answer.text()).includes("A: over JSON-RPC (ada)")).toEqual(true);
  },

  "callers without credentials are rejected before the service is called": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A"))], { authenticator: onlyAda() });
    expect(await host.reply("")).toEqual(401);
    expect(await host.reply("", "hello", { "x-key": "another" })).toEqual(401);
  },

  "a stream forwards events immediately, and ends with the service's stream": async ({ serve, expect }) => {
    const a = talker("A");
    const host = await serve([mountOf(a)]);
    const stream = await host.stream("");
    a.open();
    expect((await stream.end()).includes("last of A")).toEqual(true);
  },

  "the service's stream is closed when the client leaves": async ({ serve, expect }) => {
    const a = talker("A");
    const host = await serve([mountOf(a)]);
    const stream = await host.stream("");
    await stream.leave();
    await a.left;
    expect(await host.reply("")).toEqual("A: hello (anonymous)");
  },

  "errors of the service become errors of the protocol and reveal nothing else": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A"))]);
    expect((await host.fetch("/tasks/unknown", { headers: { "a2a-version": "1.0" } })).status).toEqual(404);
    const failed = await host.say("", "fail");
    expect([failed.status, (await failed.text()).includes("MARK")]).toEqual([500, false]);
  },

  "body size, host and origin are checked": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A"))], { limits: { bodyBytes: 1000 }, allowedHosts: [] });
    expect((await host.say("", "x".repeat(2000))).status).toEqual(413);
    expect(await host.reply("", "hello", { origin: "https://evil.example" })).toEqual(403);
    expect(await host.reply("")).toEqual("A: hello (anonymous)");
  },

  "probes answer without a store": async ({ serve, expect }) => {
    const host = await serve([mountOf(talker("A"))], { health: true });
    expect((await host.get("/healthz"))[0]).toEqual(200);
    expect(await host.get("/readyz")).toEqual([200, '{"status":"ready"}']);
  },

  "close() lets calls finish within the grace period, then ends streams": async ({ serve, expect }) => {
    const a = talker("A");
    const host = await serve([mountOf(a)]);
    const waiting = host.reply("", "wait");
    await host.stream("").then((stream) => stream.leave());
    a.open();
    expect(await waiting).toEqual("A: wait (anonymous)");
    const b = talker("B", { path: "/b" });
    host.mounts.add(mountOf(b));
    const stream = await host.stream("/b");
    await host.close({ grace: 0 });
    expect((await stream.end()).includes("last of B")).toEqual(false);
  },
};
