import type { ClientBinding } from "@parley/a2a/internal/transport/client/binding";
import type { Agent } from "@parley/a2a/internal/protocol/index";
import type { AgentMount } from "@parley/server/internal/server/options";
import { callCases, detailCases, errorCases, listCases } from "./binding/call-cases.ts";
import { callerCases, httpCases, limitCases, tenantCases, versionCases } from "./binding/host-cases.ts";
import {
  obedient,
  Served,
  type ContractCases,
  type ContractServer,
  type ContractServerOptions,
  type ContractSetup,
} from "./binding/given.ts";
import { resumeCases, streamCases } from "./binding/stream-cases.ts";
import { declareCases, type Runner } from "./runner.ts";

export type { ContractServer, ContractServerOptions };

/** Options of `bindingContract()`: how to serve and call agents. */
export interface BindingContractOptions {
  /**
   * Serves agents with the server's side of the binding: with `createHandler`, `serve` or another host. Pass the options on
   * unchanged. Each case closes its own server.
   */
  readonly serve: (agents: Agent | readonly AgentMount[], options: ContractServerOptions) => Promise<ContractServer>;
  /** The client's side, for any number of servers. */
  readonly client: ClientBinding;
  /** The version to speak. Default: the client's first. */
  readonly version?: string;
  /**
   * Features that the binding lacks in this version. The suite omits their cases. `resume`: events have no position in the
   * log, so a stream cannot resume. `list`: no ListTasks. `details`: errors have only a name and a message. `http`:
   * requests are not HTTP that a browser would send. `version`: only one version.
   */
  readonly without?: readonly ("resume" | "list" | "details" | "http" | "version")[];
}

/**
 * Tests every rule of a binding, over its server and its client: operations, streams, errors, callers, tenants,
 * versions, limits. A binding is complete when it passes.
 *
 * @example
 * ```ts
 * import { describe, it } from "node:test";
 *
 * bindingContract({ describe, it }, {
 *   client: webSocketBinding(),
 *   serve: async (agents, options) => {
 *     const server = await serve(agents, { ...options, port: 0, bindings: [webSocketServerBinding()], store: memoryStore() });
 *     return { cards: server.agents.map(({ card }) => card), close: () => server.close({ grace: 0 }) };
 *   },
 * });
 * ```
 */
export function bindingContract(runner: Runner, options: BindingContractOptions): void {
  const { client, without = [] } = options;
  const version = options.version ?? client.versions[0] ?? "";
  for (const [chapter, cases] of Object.entries(chaptersOf(version, without))) {
    declareCases(runner, chapter, cases, (expect) => {
      const servers: ContractServer[] = [];
      const serve = async (setup: ContractSetup = {}): Promise<Served> => {
        const server = await options.serve(setup.agents ?? obedient(), setup.options ?? {});
        servers.push(server);
        return new Served(client, version, server, setup);
      };
      return { given: { expect, serve }, close: () => Promise.all(servers.map((server) => server.close())) };
    });
  }
}

function chaptersOf(
  version: string,
  without: NonNullable<BindingContractOptions["without"]>,
): Readonly<Record<string, ContractCases>> {
  return {
    calls: callCases,
    ...(!without.includes("list") && { lists: listCases }),
    streams: streamCases,
    ...(!without.includes("resume") && { resume: resumeCases }),
    errors: errorCases,
    ...(!without.includes("details") && { "error details": detailCases }),
    callers: callerCases,
    // Before 1.0 the tenant is part of the URL.
    ...(version >= "1" && { tenants: tenantCases }),
    ...(!without.includes("version") && { versions: versionCases }),
    limits: limitCases,
    ...(!without.includes("http") && { http: httpCases }),
  };
}
