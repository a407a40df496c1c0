import type { Authorizations } from "../intask/index.ts";
import {
  anonymous,
  ByteBudget,
  type AgentService,
  type FileSender,
  type IncomingFiles,
  type Principal,
  type SignalOptions,
  type UniversalRequest,
  type UniversalResponse,
} from "@parley/a2a/internal/protocol/index";
import type { JsonValue } from "@parley/a2a/internal/model/index";
import { lazyConfigs, type Outbox } from "../push/index.ts";
import { pushFeature } from "../push/stored.ts";
import { queueFeature, waitFeature, type DueFeature } from "../store/index.ts";
import { Conversations } from "./conversations/conversations.ts";
import { gaugesOf } from "./gauges.ts";
import { Committer, LiveLogs } from "./log/index.ts";
import type { DeleteOwnerOptions, Erasure } from "./owner-data.ts";
import { checkedAgent, createService, Sends, TaskIndex, type CheckedAgent } from "./service/index.ts";
import { serverIsStopping, streamMoves } from "./shared/errors.ts";
import type { EngineOptions, HostedAgent } from "./shared/options.ts";
import type { OperatingHost } from "./shared/operating.ts";
import { runStore, settingsOf, type EngineSettings, type RunSettings } from "./shared/settings.ts";
import { createLiveness, createSupervisor, type Liveness, type Supervisor } from "./supervise/index.ts";
import { pause } from "@parley/a2a/internal/base/async";

/** An agent that the engine runs, or may run. */
export interface Hosting {
  readonly service: AgentService;
  /** Runs the agent from now on, including its stored tasks. */
  begin(): void;
  /**
   * Resolves when no turn of the agent runs in this process anymore. The engine then stops running the agent, unless another agent with the
   * same id has started. Waiting turns are released to other processes.
   */
  end(): Promise<void>;
}

/** Executes agents, keeps their tasks, and answers the protocol operations of these agents. */
export interface Engine {
  /** The service of one agent. Throws for an unknown id. */
  service(agentId: string): AgentService;
  /** The hosting of one agent. Throws for an unknown id. */
  hosting(agentId: string): Hosting;
  /** Prepares another agent, without running it. Its extensions must be known to the engine. */
  offer(hosted: HostedAgent): Hosting;
  /** Stores an event of a task, for `turn.waitFor()`. */
  signal(taskId: string, name: string, data?: JsonValue, options?: SignalOptions): Promise<void>;
  /** Deletes all data of a principal, for all agents. */
  deleteOwner(of: Principal | string, options?: DeleteOwnerOptions): Promise<Erasure>;
  /** All data of a principal, as JSON Lines. */
  exportOwner(of: Principal | string): AsyncIterable<string>;
  /** The open authorization requests, for the host's callback route. */
  readonly authorizations: Authorizations | undefined;
  /** Answers a request for a large file; `undefined` for other requests. `answers`: the memory limit for answers in progress. */
  file(request: UniversalRequest, answers: ByteBudget): Promise<UniversalResponse | undefined>;
  /** Functions through which operators change tasks. */
  operating(): OperatingHost;
  /** Whether an operator drains this process. */
  isDraining(): boolean;
  /** Begins to receive a message for one of these agents. Stores large files while the message is read. Requires the option `files`. */
  receive(agents: readonly string[], sender: Omit<FileSender, "services">): Promise<IncomingFiles>;
  /**
   * Starts the periodic work: leases, lost runs, timeouts, retention. Before this call, nothing runs and the store is not queried. Without
   * `background`, the work is done once now, and then on each call of `round`. Further calls of `start` do nothing.
   */
  start(background?: boolean): void;
  /** Does the due periodic work. `force`: does all of it now, and polls webhooks. */
  round(force?: boolean): Promise<void>;
  /** Whether this process runs a turn (other than one that waits for an authorization), or delivers a webhook. */
  isBusy(): boolean;
  isClosed(): boolean;
  /** When the next lease end, wait end or webhook is due, in milliseconds since the Unix epoch; `undefined`: nothing. */
  nextDue(): Promise<number | undefined>;
  /**
   * Rejects new calls, lets turns run for `grace` milliseconds (default 0), releases resumable tasks to another process and
   * fails the others, then ends open streams and waiting sends. Does not close the store.
   */
  close(options?: { readonly grace?: number }): Promise<void>;
}

export function createEngine(options: EngineOptions): Engine {
  const settings = settingsOf(options);
  const agents = new Map(options.agents.map((hosted) => [hosted.id, checkedAgent(hosted, settings)]));
  const storage = createStorage(settings, options.outbox !== undefined);
  const liveness = createLiveness(settings);
  const supervisor = createSupervisor({ settings, agents, liveness, ...storage });
  const outbox = createOutbox(options.outbox, { settings, agents, storage, liveness });
  const services = createServices({ settings, agents, storage, supervisor });
  return new AgentEngine({ settings, agents, storage, supervisor, outbox, services });
}

/** The agents that the engine runs, by id. Agents may be added and removed at any time. */
type Agents = Map<string, CheckedAgent>;

/** The store, and the parts of tasks that are in memory. */
interface Storage {
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  readonly conversations: Conversations;
  /** The memory limit of this process's messages and runs. */
  readonly budget: ByteBudget;
  readonly runSettings: RunSettings;
}

function createStorage(settings: EngineSettings, hasOutbox: boolean): Storage {
  const wakes = [...settings.extensions.wakeRows, ...(hasOutbox ? [pushFeature] : [])];
  const committer = new Committer({ ...settings, wakes });
  const runSettings = { ...settings, store: runStore(settings.store) };
  return {
    committer,
    runSettings,
    liveLogs: new LiveLogs(settings.limits),
    conversations: new Conversations(runSettings, committer),
    budget: new ByteBudget(settings.limits.totalBytes, settings.clock),
  };
}

interface OutboxDeps {
  readonly settings: EngineSettings;
  readonly agents: Agents;
  readonly storage: Storage;
  readonly liveness: Liveness;
}

function createOutbox(make: EngineOptions["outbox"], { settings, agents, storage, liveness }: OutboxDeps) {
  const { committer } = storage;
  const { extensions, lease, store } = settings;
  const outbox = make?.({
    ...settings,
    get agents() {
      return [...agents.keys()];
    },
    append: (item) => committer.append(item),
    holders: {
      own: () => lease.holder,
      isLost: (holder) => liveness.leaseWatch.isLost(holder),
      // If the store counts processes, a process that hangs longer than this soon counts as dead.
      fresh: store.nodes === undefined ? Infinity : lease.ttl / 4,
    },
    async extensionsOf(agent, registered) {
      const { declared = [] } = agents.get(agent) ?? {};
      const uris = registered.filter((uri) => declared.includes(uri));
      return { uris, deliver: extensions.deliver(uris) };
    },
  });
  if (outbox === undefined) return undefined;
  committer.stored.on((item) => outbox.stored(item));
  liveness.workLeft.on(() => outbox.reclaim());
  return outbox;
}

interface Services {
  readonly sends: Sends;
  readonly index: TaskIndex;
  readonly hostings: ReadonlyMap<string, Hosting>;
  readonly offer: (hosted: CheckedAgent) => Hosting;
  /** Whether new calls are rejected. */
  readonly door: { isClosed: boolean };
}

interface ServicesDeps {
  readonly settings: EngineSettings;
  readonly agents: Agents;
  readonly storage: Storage;
  readonly supervisor: Supervisor;
}

function createServices({ settings, agents, storage, supervisor }: ServicesDeps): Services {
  const { committer, liveLogs, budget } = storage;
  const { runs, queue, places, standing } = supervisor;
  const append: Committer["append"] = (...item) => committer.append(...item);
  const configs = settings.push && lazyConfigs(settings.push, { ...settings, append });
  const sends = new Sends({ settings, committer, liveLogs, budget, runs, queue, places, standing, configs });
  const index = new TaskIndex(settings, settings.extensions.all);
  const door = { isClosed: false };
  const deps = { settings, index, liveLogs, runs, sends, configs, door };
  const offer = (hosted: CheckedAgent): Hosting => {
    const own = { settings, agents, runs, door, service: createService(hosted, deps) };
    return new AgentHosting(hosted, own);
  };
  const hostings = new Map([...agents].map(([id, hosted]) => [id, offer(hosted)]));
  return { sends, index, hostings, offer, door };
}

/** Interval for checking whether turns of an agent still run, in milliseconds. */
const pollInterval = 20;

interface HostingDeps {
  readonly settings: EngineSettings;
  readonly agents: Agents;
  readonly runs: Supervisor["runs"];
  readonly door: Services["door"];
  readonly service: AgentService;
}

class AgentHosting implements Hosting {
  readonly service: AgentService;
  readonly #hosted: CheckedAgent;
  readonly #deps: HostingDeps;

  constructor(hosted: CheckedAgent, deps: HostingDeps) {
    this.#hosted = hosted;
    this.#deps = deps;
    this.service = deps.service;
  }

  begin(): void {
    this.#deps.agents.set(this.#hosted.id, this.#hosted);
  }

  async end(): Promise<void> {
    const { settings, agents, door } = this.#deps;
    const { id } = this.#hosted;
    while (!door.isClosed && this.#runs().some(({ phase }) => !phase.resting)) {
      await pause(settings.clock, pollInterval);
    }
    // A stopping server releases its runs itself.
    if (door.isClosed || agents.get(id) !== this.#hosted) return;
    // Do this first, so that this process does not take over the tasks that it then releases.
    agents.delete(id);
    await Promise.all(this.#runs().map(({ phase }) => phase.stop()));
  }

  #runs() {
    return [...this.#deps.runs.all()].filter(({ key }) => key.agent === this.#hosted.id);
  }
}

interface EngineParts extends ServicesDeps {
  readonly outbox: Outbox | undefined;
  readonly services: Services;
}

class AgentEngine implements Engine {
  readonly authorizations: Authorizations | undefined;
  readonly #parts: EngineParts;
  #started: { readonly background: boolean; readonly closeGauges: (() => void) | undefined | void } | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.authorizations = parts.settings.authorizations;
  }

  service(agentId: string): AgentService {
    return this.hosting(agentId).service;
  }

  hosting(agentId: string): Hosting {
    const found = this.#parts.services.hostings.get(agentId);
    if (found === undefined) throw new Error(`No agent has the id ${agentId}`);
    return found;
  }

  offer(hosted: HostedAgent): Hosting {
    const { services, settings } = this.#parts;
    return services.offer(checkedAgent(hosted, settings));
  }

  async signal(...event: Parameters<Engine["signal"]>): Promise<void> {
    this.#checkOpen();
    const { settings, storage, supervisor } = this.#parts;
    const { signalTask } = await import("./service/signal.ts");
    // Without periodic work, a run that starts now would freeze. The event stays due until the next request or `round` handles it.
    const settle: Supervisor["settle"] = async (task) =>
      this.#started?.background === true ? supervisor.settle(task) : undefined;
    const { committer } = storage;
    return signalTask({ ...settings, committer, agents: this.#agentIds, settle }, ...event);
  }

  async deleteOwner(of: Principal | string, options?: DeleteOwnerOptions): Promise<Erasure> {
    this.#checkOpen();
    const { settings, storage, supervisor, services } = this.#parts;
    const { deleteOwner } = await import("./owner-data.ts");
    const deps = { settings, ...storage, runs: supervisor.runs, sends: services.sends, agents: this.#agentIds };
    return deleteOwner(deps, of, options);
  }

  async *exportOwner(of: Principal | string): AsyncGenerator<string, void, void> {
    const { exportOwned } = await import("./owner-data.ts");
    yield* exportOwned(this.#parts.settings, this.#agentIds, of);
  }

  async receive(
    agentIds: readonly string[],
    { principal, address, bytes, signal }: Omit<FileSender, "services">,
  ): Promise<IncomingFiles> {
    this.#checkOpen();
    const { blobs, ids, ownerOf } = this.#parts.settings;
    if (blobs === undefined) throw new Error("This server stores no files");
    const agent = agentIds.length === 1 ? agentIds[0] : undefined;
    const owner = ownerOf(principal);
    const payer = principal === anonymous ? `address ${address ?? ""}` : `owner ${owner}`;
    return blobs.receive({ agent, owner, payer, taskId: ids.next(), bytes, signal });
  }

  async file(request: UniversalRequest, answers: ByteBudget): Promise<UniversalResponse | undefined> {
    return (await this.#parts.settings.blobs?.load())?.answer(request, answers);
  }

  operating(): OperatingHost {
    const { settings, storage, supervisor, agents } = this.#parts;
    const { lease } = settings;
    const causeOf = (by: Principal | undefined) => (by === undefined ? undefined : { by });
    return {
      get node() {
        return lease.holder;
      },
      append: (item, by) => storage.committer.append(item, undefined, causeOf(by)),
      cancel: (head, { effects, seq, by }) =>
        supervisor.runs.endTask(
          head,
          { state: "TASK_STATE_CANCELED" },
          { effects, ...(seq !== undefined && { seq }), ...causeOf(by) },
        ),
      nudge: () => supervisor.operated(),
      agents: () => [...agents.keys()],
      nodes: () => supervisor.silences(),
      silence: lease.ttl,
    };
  }

  isDraining(): boolean {
    return this.#parts.supervisor.standing.isDraining;
  }

  start(background = true): void {
    if (this.#started !== undefined) return;
    const { settings, storage, supervisor, services, outbox } = this.#parts;
    supervisor.start(background);
    services.index.start();
    outbox?.start();
    const { agents } = this.#parts;
    const deps = { settings, runs: supervisor.runs, budget: storage.budget, agents };
    this.#started = { background, closeGauges: settings.observer?.gauges?.(gaugesOf(deps)) };
  }

  async round(force = false): Promise<void> {
    if (force) this.#parts.outbox?.poll();
    await this.#parts.supervisor.tick(force);
  }

  isBusy(): boolean {
    const { outbox, supervisor } = this.#parts;
    return outbox?.isBusy === true || [...supervisor.runs.all()].some(({ phase }) => !phase.resting);
  }

  isClosed(): boolean {
    return this.#closing !== undefined;
  }

  async nextDue(): Promise<number | undefined> {
    const { settings, supervisor, outbox } = this.#parts;
    const { store, clock, lease } = settings;
    const query = { now: Number.MAX_SAFE_INTEGER, agents: this.#agentIds, limit: 1 };
    const first = async (feature: string): Promise<DueFeature | undefined> =>
      (await store.dueFeatures({ ...query, feature }))[0];
    const run = (await store.claimable(query)).heads[0];
    const webhook = outbox && (await first(pushFeature));
    const wait = await first(waitFeature);
    const queued = await first(queueFeature);
    const dues = [webhook, wait].flatMap((row) => row?.due ?? []);
    if (queued !== undefined && supervisor.runs.room > 0) dues.push(clock.now());
    // If the store counts processes, a lease lasts as long as its process, which may already have ended.
    const latest = store.nodes === undefined ? Infinity : clock.now() + lease.ttl;
    if (run !== undefined) dues.push(Math.min(latest, run.leaseUntil ?? clock.now()));
    return dues.length === 0 ? undefined : Math.min(...dues);
  }

  close({ grace = 0 }: { readonly grace?: number } = {}): Promise<void> {
    return (this.#closing ??= this.#close(grace));
  }

  async #close(grace: number): Promise<void> {
    const { settings, storage, supervisor, outbox, services } = this.#parts;
    const { clock } = settings;
    const since = clock.elapsed();
    services.door.isClosed = true;
    this.#started?.closeGauges?.();
    storage.liveLogs.drain(streamMoves());
    await supervisor.stop(grace);
    // Running deliveries are claimed by this process, so it must stay alive until they end.
    await outbox?.stop(Math.max(0, grace - (clock.elapsed() - since)));
    await supervisor.leave();
    // Streams end without a last event, so that their clients resubscribe at the process that then runs the task.
    storage.liveLogs.close(serverIsStopping());
  }

  get #agentIds(): readonly string[] {
    return [...this.#parts.agents.keys()];
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw serverIsStopping();
  }
}
