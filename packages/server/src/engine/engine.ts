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
import type { DeleteOwnerOptions, Erasure } from "./owner-data.ts";
import { Committer, LiveLogs } from "./log/index.ts";
import { Conversations } from "./conversations/conversations.ts";
import { runStore } from "./shared/run-store.ts";
import { settingsOf, type EngineOptions, type HostedAgent } from "./shared/options.ts";
import { serverIsStopping, streamMoves } from "./shared/refusals.ts";
import { checkedAgent, createService, Sends, type CheckedAgent } from "./service/index.ts";
import { lazyConfigs, type Outbox } from "../push/index.ts";
import { pushFeature } from "../push/stored.ts";
import { queueFeature, waitFeature, type TaskAppend } from "../store/index.ts";
import type { JsonValue } from "@parley/a2a/internal/model/index";
import { TaskIndex } from "./shared/task-index.ts";
import { createSupervisor } from "./supervise/index.ts";

/** An agent that the engine runs, or may run. */
export interface Hosting {
  readonly service: AgentService;
  /** Runs it from now on, also what is stored. */
  begin(): void;
  /** Resolves when no turn of it runs here. Then the engine runs it no more, unless another one has begun under its id. */
  end(): Promise<void>;
}

/** Executes agents, keeps their tasks, and answers the operations of the protocol for them. */
export interface Engine {
  /** The service of one agent; throws for an id that was not given. */
  service(agentId: string): AgentService;
  /** One of the agents; throws for an id that was not given. */
  hosting(agentId: string): Hosting;
  /** Another agent, which does not run yet. Its extensions have to be known. */
  offer(hosted: HostedAgent): Hosting;
  /** Stores an event of a task, for `turn.waitFor()`. */
  signal(taskId: string, name: string, data?: JsonValue, options?: SignalOptions): Promise<void>;
  /** Deletes all that a principal owns, with whatever agent. */
  deleteOwner(of: Principal | string, options?: DeleteOwnerOptions): Promise<Erasure>;
  /** All that a principal owns, as JSON Lines. */
  exportOwner(of: Principal | string): AsyncIterable<string>;
  /** Requests for authorizations, for the callback of the host. */
  readonly authorizations: Authorizations | undefined;
  /** Answers a request for a large file. `undefined`: there are none. `answers`: the memory that readers may hold. */
  file(request: UniversalRequest, answers: ByteBudget): Promise<UniversalResponse | undefined>;
  /** Begins to receive a message whose large files are stored while it is read, for one of these agents. Only where there is `files`. */
  receive(agents: readonly string[], sender: Omit<FileSender, "services">): Promise<IncomingFiles>;
  /**
   * Starts the periodic work: leases, lost runs, timeouts, retention. Until then nothing runs and the store is not asked. `byItself`
   * false: it is done once, and when `round` is called. Further calls do nothing.
   */
  start(byItself?: boolean): void;
  /** Does the periodic work that is due. `all`: also what is not due yet, and webhooks are looked for. */
  round(all?: boolean): Promise<void>;
  /** Whether a turn runs here that does not wait for an authorization, or a webhook is being delivered. */
  isBusy(): boolean;
  /** Whether `close` was called. */
  isClosed(): boolean;
  /**
   * When the next stored work is due, in milliseconds since the Unix epoch: the end of a lease or of a wait, or a webhook. `undefined`: there is none.
   */
  nextDue(): Promise<number | undefined>;
  /**
   * Refuses new calls, lets turns go on for `grace` milliseconds (default 0), leaves resumable tasks to another process and
   * fails the others, then ends the streams and sends that still wait. It does not close the store.
   */
  close(options?: { readonly grace?: number }): Promise<void>;
}

/** Time between two looks whether turns of an agent still run, in milliseconds. */
const lookInterval = 20;

export function createEngine(options: EngineOptions): Engine {
  const settings = settingsOf(options);
  const agents = new Map(options.agents.map((hosted) => [hosted.id, checkedAgent(hosted, settings)]));
  const committer = new Committer({
    ...settings,
    wakes: [...settings.extensions.wakeRows, ...(options.outbox === undefined ? [] : [pushFeature])],
    ...(options.outbox !== undefined && { stored: (item: TaskAppend) => outbox?.stored(item) }),
  });
  const outbox: Outbox | undefined = options.outbox?.({
    ...settings,
    get agents() {
      return [...agents.keys()];
    },
    append: (item) => committer.append(item),
    holders: {
      own: () => settings.lease.holder,
      isLost: (holder) => supervisor.isLost(holder),
      // Where processes are counted, one that stands still for longer than this counts as gone a little later.
      fresh: settings.store.nodes === undefined ? Infinity : settings.lease.ttl / 4,
    },
    async extensionsOf(agent, registered) {
      await settings.extensions.ready();
      const { declared = [] } = agents.get(agent) ?? {};
      const uris = registered.filter((uri) => declared.includes(uri));
      return { uris, deliver: settings.extensions.deliver(uris) };
    },
  });
  const liveLogs = new LiveLogs(settings.limits);
  const index = new TaskIndex(settings, settings.extensions.all);
  const runSettings = { ...settings, store: runStore(settings.store) };
  const conversations = new Conversations(runSettings, committer);
  const budget = new ByteBudget(settings.limits.totalBytes, settings.clock);
  const onLost = (): void => outbox?.takeOver();
  const rooms = { settings, runSettings, committer, liveLogs, conversations, budget, agents };
  const supervisor = createSupervisor({ ...rooms, onLost });
  const { runs, queue } = supervisor;
  const configs =
    settings.push && lazyConfigs(settings.push, { ...settings, append: (item) => committer.append(item) });
  const sends = new Sends({ settings, committer, liveLogs, budget, runs, queue, configs });
  let closing: Promise<void> | undefined;
  let started = false;
  let byItself = false;

  const hostingOf = (hosted: CheckedAgent): Hosting => {
    const { id } = hosted;
    const guarded = (): AgentService => hosted.guard?.(service) ?? service;
    const isClosed = (): boolean => closing !== undefined;
    const own = createService(hosted, { settings, index, liveLogs, runs, sends, configs, isClosed, guarded });
    const service = settings.blobs?.around(own, id, settings.ownerOf) ?? own;
    const isRunning = (): boolean => [...runs.all()].some(({ key, phase }) => key.agent === id && !phase.resting);
    return {
      service,
      begin: () => void agents.set(id, hosted),
      async end() {
        while (closing === undefined && isRunning()) {
          await new Promise<void>((resolve) => void settings.clock.after(lookInterval, resolve));
        }
        if (agents.get(id) === hosted) agents.delete(id);
      },
    };
  };
  const hostings = new Map([...agents].map(([id, hosted]) => [id, hostingOf(hosted)]));
  const hosting = (agentId: string): Hosting => {
    const found = hostings.get(agentId);
    if (found === undefined) throw new Error(`No agent has the id ${agentId}`);
    return found;
  };

  async function close(grace: number): Promise<void> {
    const since = settings.clock.elapsed();
    liveLogs.drain(streamMoves());
    await supervisor.stop(grace);
    // Webhooks that are under way are claimed in the name of this process, which has to be alive until they are over.
    await outbox?.stop(Math.max(0, grace - (settings.clock.elapsed() - since)));
    await supervisor.leave();
    // Streams break off without a last event, so that their clients subscribe again, to the process that runs the task then.
    liveLogs.close(serverIsStopping());
  }

  return {
    service: (agentId) => hosting(agentId).service,
    hosting,
    offer: (hosted) => hostingOf(checkedAgent(hosted, settings)),
    async signal(...event) {
      if (closing !== undefined) throw serverIsStopping();
      const { signalTask } = await import("./service/signal.ts");
      // Where nobody attends to a run, it would be frozen: the event is due, and the next request or `round` finds it.
      const settle = byItself ? supervisor.settle : async (): Promise<void> => {};
      const rooms = { ...settings, committer, agents: [...agents.keys()], settle };
      return signalTask(rooms, ...event);
    },
    async deleteOwner(of, options) {
      if (closing !== undefined) throw serverIsStopping();
      const { deleteOwner } = await import("./owner-data.ts");
      const rooms = { settings, committer, runs, conversations, sends, agents: [...agents.keys()] };
      return deleteOwner(rooms, of, options);
    },
    async *exportOwner(of) {
      const { exportOwned } = await import("./owner-data.ts");
      yield* exportOwned(settings, [...agents.keys()], of);
    },
    authorizations: settings.authorizations,
    async receive(agentIds, { principal, address, bytes, signal }) {
      if (closing !== undefined) throw serverIsStopping();
      const { blobs, ids, ownerOf } = settings;
      if (blobs === undefined) throw new Error("There is no store of files");
      const agent = agentIds.length === 1 ? agentIds[0] : undefined;
      const owner = ownerOf(principal);
      const payer = principal === anonymous ? `address ${address ?? ""}` : `owner ${owner}`;
      return blobs.receive({ agent, owner, payer, taskId: ids.next(), bytes, signal });
    },
    file: async (request, answers) => (await settings.blobs?.load())?.answer(request, answers),
    start(isByItself = true) {
      if (started) return;
      started = true;
      byItself = isByItself;
      supervisor.start(byItself);
      index.start();
      outbox?.start();
    },
    async round(all = false) {
      if (all) outbox?.look();
      await supervisor.round(all);
    },
    isClosed: () => closing !== undefined,
    isBusy: () => outbox?.isBusy === true || [...runs.all()].some(({ phase }) => !phase.resting),
    async nextDue() {
      const { store } = settings;
      const query = { now: Number.MAX_SAFE_INTEGER, agents: [...agents.keys()], limit: 1 };
      const run = (await store.claimable(query)).heads[0];
      const row = outbox && (await store.dueFeatures({ ...query, feature: pushFeature }))[0];
      const wait = (await store.dueFeatures({ ...query, feature: waitFeature }))[0];
      const queued = (await store.dueFeatures({ ...query, feature: queueFeature }))[0];
      const dues = [row, wait].flatMap((each) => each?.due ?? []);
      if (queued !== undefined && runs.room > 0) dues.push(settings.clock.now());
      // Where processes are counted, a lease lasts as long as its process, which may be gone by then.
      const latest = store.nodes === undefined ? Infinity : settings.clock.now() + settings.lease.ttl;
      const times = [...(run ? [Math.min(latest, run.leaseUntil ?? settings.clock.now())] : []), ...dues];
      return times.length === 0 ? undefined : Math.min(...times);
    },
    close: ({ grace = 0 } = {}) => (closing ??= close(grace)),
  };
}
