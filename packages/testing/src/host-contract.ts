import type { HostedService } from "@parley/server/internal/server/options";
import { ServedHost, type ContractHost, type ContractHostOptions, type HostCases } from "./host/given.ts";
import { mountCases } from "./host/mount-cases.ts";
import { routeCases } from "./host/route-cases.ts";
import { serviceCases } from "./host/service-cases.ts";
import { plainExpect } from "./store/given.ts";
import type { Runner } from "./store-contract.ts";

export type { ContractHost, ContractHostOptions };

/** How the suites serve. */
export interface HostContractOptions {
  /**
   * Serves services with `createHost`, `serve` or a host of your own, with JSON-RPC and REST. The options go to it as they are. Each case
   * has a host of its own, and closes it.
   */
  readonly serve: (mounts: readonly HostedService[], options: ContractHostOptions) => Promise<ContractHost>;
}

/**
 * Every rule of a host that serves services without an engine: cards, callers, streams, errors, limits, probes, closing.
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

/** Every rule of agents that are added, replaced and removed while a host serves. */
export function mountsContract(runner: Runner, options: HostContractOptions): void {
  declare(runner, "mounts that change", mountCases, options);
}

/** Every rule of routes and pages that an application has beside the agents of a host. */
export function routesContract(runner: Runner, options: HostContractOptions): void {
  declare(runner, "routes beside agents", routeCases, options);
}

function declare(runner: Runner, chapter: string, cases: HostCases, options: HostContractOptions): void {
  const expect = (actual: unknown) => runner.expect?.(actual) ?? plainExpect(actual);
  runner.describe(chapter, () => {
    for (const [name, body] of Object.entries(cases)) {
      runner.it(name, async () => {
        const hosts: ContractHost[] = [];
        const serve = async (mounts: readonly HostedService[], own: ContractHostOptions = {}): Promise<ServedHost> => {
          const host = await options.serve(mounts, own);
          hosts.push(host);
          return new ServedHost(host);
        };
        try {
          await body({ expect, serve });
        } finally {
          for (const host of hosts) await host.close({ grace: 0 });
        }
      });
    }
  });
}
