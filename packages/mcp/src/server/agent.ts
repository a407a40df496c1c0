import { connect, type Client } from "@parley/a2a";
import type { Clock, Logger, Principal } from "@parley/a2a/protocol";
import { handlesFor, type HandleKey, type Handles } from "./handles.ts";
import type { McpServerOptions } from "./options.ts";
import type { ResultLimits } from "./results.ts";
import type { SkillTool } from "./skills.ts";

/* The agent as one caller may use it. */

/** What all requests of a bridge share. */
export interface BridgeDeps {
  readonly client: Client;
  readonly tools: readonly SkillTool[];
  readonly limits: ResultLimits;
  readonly maxWaitMs: number;
  readonly pollIntervalMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Prefix of the URIs of resources. */
  readonly base: string;
  /** The client for a caller's calls. */
  clientFor(caller: Principal): Promise<Client>;
  handlesFor(caller: Principal): Handles;
}

/** A caller's view of the agent. */
export interface CallerView {
  readonly client: Client;
  readonly handles: Handles;
}

export async function viewOf(deps: BridgeDeps, caller: Principal): Promise<CallerView> {
  return { client: await deps.clientFor(caller), handles: deps.handlesFor(caller) };
}

/** Clients with credentials of their own are kept for as many callers. */
const maxClients = 100;

/** Makes the clients of callers. Each has its own credentials, if there is an exchange. */
export function clientsFor(
  agent: Client | string | URL,
  shared: Client,
  { credentialsFor, connect: options = {} }: McpServerOptions,
): (caller: Principal) => Promise<Client> {
  if (credentialsFor === undefined) return async () => shared;
  if (typeof agent !== "string" && !(agent instanceof URL)) {
    throw new TypeError("credentialsFor needs the URL of the agent; got a client, which has credentials of its own");
  }
  const known = new Map<string, Promise<Client>>();
  return (caller) => {
    const name = JSON.stringify([caller.organization ?? null, caller.subject]);
    const made = known.get(name) ?? connected(agent, async () => ({ ...options, ...(await credentialsFor(caller)) }));
    known.delete(name);
    known.set(name, made);
    const [oldest] = known.keys();
    if (known.size > maxClients && oldest !== undefined) known.delete(oldest);
    // A failed exchange is tried again.
    made.catch(() => known.delete(name));
    return made;
  };
}

async function connected(
  agent: string | URL,
  options: () => Promise<NonNullable<McpServerOptions["connect"]>>,
): Promise<Client> {
  return connect(agent, await options());
}

export function handlesOf(key: HandleKey | undefined): (caller: Principal) => Handles {
  return (caller) => handlesFor(key, caller);
}
