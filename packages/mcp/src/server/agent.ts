import { connect, type Client } from "@parley/a2a";
import type { Clock, Logger, Principal } from "@parley/a2a/protocol";
import { callerKey, handlesFor, type HandleKey, type Handles } from "./handles.ts";
import type { McpServerOptions } from "./options.ts";
import type { ResultLimits } from "./results.ts";
import type { SkillFile } from "./skill-files.ts";
import type { SkillTool } from "./skills.ts";

/* A caller's access to the agent. */

/** Dependencies that all requests of a bridge share. */
export interface BridgeDeps {
  readonly client: Client;
  readonly tools: readonly SkillTool[];
  readonly skillFiles: readonly SkillFile[];
  readonly limits: ResultLimits;
  readonly maxWaitMs: number;
  readonly pollIntervalMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Prefix of resource URIs. */
  readonly base: string;
  /** Returns the client for a caller's calls. */
  clientFor(caller: Principal): Promise<Client>;
  handlesFor(caller: Principal): Handles;
}

/** A caller's view of the agent. */
export interface CallerView {
  readonly client: Client;
  readonly handles: Handles;
  /** The caller, as a key. */
  readonly owner: string;
}

export async function viewOf(deps: BridgeDeps, caller: Principal): Promise<CallerView> {
  return { client: await deps.clientFor(caller), handles: deps.handlesFor(caller), owner: callerKey(caller) };
}

/** Maximum number of cached clients with per-caller credentials. */
const maxClients = 100;

/** Time until a caller's credentials are requested again, because exchanged credentials expire. */
const maxClientMs = 60_000;

/** Makes the clients of callers. With `credentialsFor`, each client has its own credentials. */
export function clientsFor(
  agent: Client | string | URL,
  shared: Client,
  { credentialsFor, connect: options = {} }: McpServerOptions,
  clock: Clock,
): (caller: Principal) => Promise<Client> {
  if (credentialsFor === undefined) return async () => shared;
  if (typeof agent !== "string" && !(agent instanceof URL)) {
    throw new TypeError("credentialsFor needs the URL of the agent; got a client, which has its own credentials");
  }
  const make = async (caller: Principal): Promise<Client> =>
    connect(agent, { ...options, ...(await credentialsFor(caller)) });
  const known = new Map<string, { readonly client: Promise<Client>; readonly end: number }>();
  return (caller) => {
    const name = callerKey(caller);
    const now = clock.elapsed();
    const found = known.get(name);
    if (found !== undefined && now < found.end) return found.client;
    const made = { client: make(caller), end: now + maxClientMs };
    known.delete(name);
    known.set(name, made);
    const [oldest] = known.keys();
    if (known.size > maxClients && oldest !== undefined) known.delete(oldest);
    // The next call retries a failed exchange.
    made.client.catch(() => known.get(name) === made && known.delete(name));
    return made.client;
  };
}

export function handlesOf(key: HandleKey | undefined): (caller: Principal) => Handles {
  return (caller) => handlesFor(key, caller);
}
