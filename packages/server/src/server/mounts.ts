import { withoutSlashes } from "@parley/a2a/internal/base/index";
import { A2AError, type AgentCard } from "@parley/a2a/internal/model/index";
import type { AgentService, AnyExtension } from "@parley/a2a/internal/protocol/index";
import type { CardGate } from "@parley/a2a/internal/transport/discovery/handler";
import { hostsOf } from "@parley/a2a/internal/transport/server/origins";
import type { ServiceMount } from "@parley/a2a/internal/transport/router/claims";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import type { OpenCalls } from "@parley/a2a/internal/transport/server/context";
import { mountsOf } from "./checks.ts";
import { isRun, tidy, type AnyMount, type MountedAgent } from "./mounted.ts";
import type { ServedAgent } from "./options.ts";
import type { Mounts } from "./port.ts";
import type { Services } from "./services.ts";
import type { HostSettings } from "./settings.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/* The served agents of a host, and their changes at runtime. */

/** The service and the runtime of a mounted agent. */
export interface Backing {
  readonly service: AgentService;
  /** Called when the agent begins to be served. */
  begin?(): void;
  /** Called when the agent is no longer served and has no open calls. Resolves when it has no turns in this process. */
  end?(): Promise<void>;
}

/** The dependencies of the agents of a host. */
export interface MountsInit {
  readonly settings: HostSettings;
  /** The agent at its address, with its card. */
  mounted(mount: AnyMount): MountedAgent;
  /** Its service and runtime, which starts later. */
  backing(agent: MountedAgent): Backing;
  readonly services: Pick<Services, "served">;
  readonly gateOf: ((agent: MountedAgent) => CardGate) | undefined;
}

export interface Served {
  readonly agent: MountedAgent;
  readonly backing: Backing;
  /** Its service for callers, behind all checks. */
  readonly service: AgentService;
  readonly mount: ServiceMount;
  /** The hosts in the addresses of its card. */
  readonly hosts: readonly string[];
}

/** Serves another set of agents, or throws without any change. */
export type Switch = (all: readonly Served[]) => void;

export class HostMounts<Mount extends AnyMount> implements Mounts<Mount> {
  readonly #calls: OpenCalls;
  readonly #init: MountsInit;
  readonly #switch: Switch;
  /** Extensions that an agent may have. Their code is loaded when the host is created. */
  readonly #extensions: ReadonlySet<AnyExtension>;
  #all: readonly Served[];

  constructor(all: readonly Served[], init: MountsInit, calls: OpenCalls, change: Switch) {
    this.#all = all;
    this.#calls = calls;
    this.#init = init;
    this.#switch = change;
    const own = all.flatMap(({ agent: { mount } }) => (isRun(mount) ? (mount.agent.extensions ?? []) : []));
    this.#extensions = new Set([...init.settings.extensions, ...own]);
  }

  get agents(): readonly ServedAgent[] {
    return this.#all.map(({ agent }) => agent);
  }

  add(mounts: Mount | readonly Mount[]): readonly ServedAgent[] {
    const added = this.#made(mountsOf<AnyMount>(mounts));
    this.#change([...this.#all, ...added], added);
    return added.map(({ agent }) => agent);
  }

  replace(mount: Mount): ServedAgent {
    const [next] = this.#made(mountsOf<AnyMount>(mount));
    const id = next?.agent.id;
    const former = this.#all.find(({ agent }) => agent.id === id);
    if (next === undefined || former === undefined) {
      throw cannotServe("id", `no served agent has the id ${JSON.stringify(id)}: add it`);
    }
    this.#change(
      this.#all.map((each) => (each === former ? next : each)),
      [next],
    );
    return next.agent;
  }

  async remove(id: string): Promise<void> {
    const gone = this.#all.find(({ agent }) => agent.id === id);
    if (gone === undefined) return;
    this.#change(
      this.#all.filter((each) => each !== gone),
      [],
    );
    await this.#calls.ended(gone.service);
    await gone.backing.end?.();
  }

  #made(mounts: readonly AnyMount[]): readonly Served[] {
    if (this.#init.settings.closing.signal.aborted) throw new A2AError("Unavailable", "The server is stopping");
    return mounts.map((mount) => {
      const late = isRun(mount) && mount.agent.extensions?.find((extension) => !this.#extensions.has(extension));
      if (late) {
        const rule = "An added agent may only have extensions of the host and of its initial agents";
        throw cannotServe("extensions", `has ${late.uri}, which the host does not know. ${rule}`);
      }
      return servedAgent(this.#init.mounted(mount), this.#init);
    });
  }

  #change(all: readonly Served[], added: readonly Served[]): void {
    checkIds(all.map(({ agent }) => agent.id));
    this.#switch(all);
    this.#all = all;
    for (const { backing } of added) backing.begin?.();
  }
}

export function servedAgent(agent: MountedAgent, init: MountsInit): Served {
  const { settings, gateOf } = init;
  const backing = init.backing(agent);
  const service = init.services.served(backing.service, agent);
  return {
    agent,
    backing,
    service,
    mount: serviceMount(agent, service, settings, gateOf?.(agent)),
    hosts: hostsOf(agent.card),
  };
}

export function checkIds(ids: readonly string[]): void {
  const known = new Set<string>();
  for (const id of ids) {
    if (known.has(id)) {
      const reason =
        "The store finds the tasks of an agent by this id, which defaults to its path and tenant. Give each agent its own path or id";
      throw cannotServe("id", `two agents have the id ${JSON.stringify(id)}. ${reason}`);
    }
    known.add(id);
  }
}

export function withCards(all: readonly MountedAgent[], cards: ReadonlySet<AgentCard>): readonly MountedAgent[] {
  return all.filter(({ card }) => cards.has(card));
}

/** The agent for the router. */
function serviceMount(
  { card, mount }: MountedAgent,
  service: AgentService,
  { basePath, signer }: HostSettings,
  gate: CardGate | undefined,
): ServiceMount {
  const { path = "", tenant, interfaces, cardPaths } = mount;
  return {
    path: basePath + withoutSlashes(path),
    interfaces: tidy(interfaces),
    service,
    card,
    ...(signer !== undefined && { signedCard: () => signer.sign(card) }),
    ...defined({ tenant, cardPaths, gate }),
  };
}
