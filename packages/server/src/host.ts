import { jsonRpcBinding } from "@parley/a2a/internal/transport/jsonrpc/handler";
import { restBinding } from "@parley/a2a/internal/transport/rest/handler";
import { draftsOf, wires, type ProtocolVersion } from "@parley/a2a/internal/wires";
import { checkHostOptions, mountsOf } from "./server/checks.ts";
import { ReadinessCheck } from "./server/health.ts";
import { openHost } from "./server/host.ts";
import { mountedAgent, type AnyMount, type MountedAgent } from "./server/mounted.ts";
import type { HostedService, HostOptions as Options } from "./server/options.ts";
import type { Host } from "./server/port.ts";
import { callersOf, servicesOf } from "./server/services.ts";
import { hostSettings, type Spoken } from "./server/settings.ts";

/** Options of `createHost`. */
export type HostOptions = Options<ProtocolVersion>;

/** The bindings and versions of this project. */
export const spoken: Spoken = { bindings: [jsonRpcBinding(), restBinding()], wires, draftsOf };

/**
 * Serves services of your own over all bindings, without an engine and a store: for gateways and proxies. It has the cards, callers, limits,
 * probes and routes of `createHandler`.
 *
 * @throws A2AError `InvalidParams` where an option is missing or wrong, or where two agents or two bindings have one address or one
 * name.
 *
 * @example
 * ```ts
 * const upstream = await connect("https://weather.internal");
 * const card = { name: "Weather", description: "Knows the weather.", version: "1.0.0", skills: [] };
 * const host = createHost({ service: upstream.service, card }, { publicUrl: "https://agents.example.com" });
 * ```
 */
export function createHost(mounts: HostedService | readonly HostedService[], options: HostOptions): Host {
  checkHostOptions("createHost()", options);
  const settings = hostSettings(options, spoken);
  const { publicUrl, bindings, codecs, clock, logger } = settings;
  const by = { publicUrl, bindings, codecs, authenticator: options.authenticator, extensions: settings.extensions };
  const callers = callersOf(settings);
  const mounted = (mount: AnyMount): MountedAgent => mountedAgent(mount, by);
  return openHost<HostedService>(mountsOf(mounts).map(mounted), {
    settings,
    callers,
    services: servicesOf(settings, callers),
    readiness: new ReadinessCheck(undefined, clock, logger),
    mounted,
  });
}
