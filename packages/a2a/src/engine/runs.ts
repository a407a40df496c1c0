import { deferred } from "../base/index.ts";
import { A2AError, type Message } from "../model/index.ts";
import type { AppendItem, ClaimPosition, TaskHead } from "../store/index.ts";
import { ChurnMap } from "./churn-map.ts";
import { LeaseWatch } from "./lease-watch.ts";
import type { Committer } from "./committer.ts";
import type { Conversations } from "./conversations.ts";
import type { Board } from "./live.ts";
import type { EngineSettings, HostedAgent } from "./options.ts";
import { lossOf } from "./log-writer.ts";
import { Pace } from "./pace.ts";
import { statusRecord, type StoredCall } from "./records.ts";
import { Run, safeSentences, type RunInit, type RunRooms } from "./run.ts";
import { WallWatch } from "./wall.ts";

/** So many lost tasks are looked up at a time. */
const claimPageSize = 100;

export interface RunsRooms {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly board: Board;
  readonly conversations: Conversations;
  readonly agents: ReadonlyMap<string, HostedAgent>;
}

/** Everything that this process executes: starts it, keeps its leases, takes over what others lost, and stops it (D6). */
export class Runs {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly board: Board;
  readonly #rooms: RunsRooms & RunRooms;
  readonly #running = new ChurnMap<string, Run>();
  readonly #wall: WallWatch;
  readonly #leases: LeaseWatch;
  #stopping = false;

  constructor(rooms: RunsRooms) {
    this.settings = rooms.settings;
    this.committer = rooms.committer;
    this.board = rooms.board;
    const onOver = (over: Run): void => {
      if (this.#running.get(over.key.taskId) === over) this.#running.delete(over.key.taskId);
    };
    const { clock, lease } = this.settings;
    this.#wall = new WallWatch(clock);
    this.#leases = new LeaseWatch(clock, lease);
    this.#rooms = { ...rooms, pace: new Pace(clock), onOver };
  }

  start(init: RunInit): Run {
    if (this.#stopping) throw new A2AError("Unavailable", "The server is stopping", { retryAfter: 1 });
    const run = new Run(this.#rooms, init);
    this.#running.set(init.key.taskId, run);
    return run;
  }

  find(taskId: string): Run | undefined {
    return this.#running.get(taskId);
  }

  /** Ends turns that have gone on, or have been silent, for too long. */
  checkLimits(): void {
    const now = this.settings.clock.elapsed();
    for (const run of this.#running.values()) {
      const { idleTimeout = 5 * 60_000, turnTimeout = 60 * 60_000 } = run.hosted.agent;
      if (turnTimeout !== false && now - run.startedAt >= turnTimeout) {
        run.expire("turnTimeout", `The turn went on for more than ${turnTimeout} ms`);
      } else if (idleTimeout !== false && !run.waits && now - run.lastSignAt >= idleTimeout) {
        run.expire("idleTimeout", `The agent yielded nothing for ${idleTimeout} ms`);
      }
    }
  }

  /** Whether the wall clock was set since the last call. Leases are wall time: those of this process are to be renewed then. */
  wallJumped(): boolean {
    const jump = this.#wall.notice();
    if (jump === 0) return false;
    this.settings.logger.warn("The wall clock was set", { jump: Math.round(jump) });
    this.#leases.distrustWall();
    return true;
  }

  /** Renews the leases of what runs here. A run that has lost its own hears of it now, if it has not noticed before. */
  async renew(): Promise<void> {
    const until = this.settings.clock.now() + this.settings.lease.ttl;
    await Promise.all(
      [...this.#running.values()].map(async (run) => {
        const { fence, key } = run;
        if (fence === undefined) return;
        const item: AppendItem = { task: key, fence, records: [], effects: [{ effect: "lease", op: "renew", until }] };
        // A store that fails now may be back before the lease runs out.
        const outcome = await this.committer.append(item).catch(() => undefined);
        if (outcome?.ok === false) run.lose(lossOf(outcome));
      }),
    );
  }

  /** Takes over what nobody executes any more. */
  async recover(): Promise<void> {
    const { store } = this.settings;
    if (this.wallJumped()) await this.renew();
    const { all, now } = this.#leases.begin();
    const agents = [...this.#rooms.agents.keys()];
    let after: ClaimPosition | undefined;
    do {
      const page = await store.claimable({
        now: all ? Number.MAX_SAFE_INTEGER : now,
        agents,
        limit: claimPageSize,
        ...(after && { after }),
      });
      for (const head of page.heads) {
        if (this.#stopping) return;
        const hosted = this.#rooms.agents.get(head.task.agent);
        if (hosted === undefined || this.#running.has(head.task.taskId) || !this.#leases.isOver(head)) continue;
        // One that cannot be taken over now must not be in the way of the others.
        await this.#takeOver(hosted, head).catch((cause: unknown) => {
          const { agent, taskId } = head.task;
          this.settings.logger.error("A lost task could not be taken over", { agent, taskId, cause });
        });
      }
      after = page.next;
    } while (after !== undefined);
    this.#leases.end();
  }

  async #takeOver(hosted: HostedAgent, head: TaskHead): Promise<void> {
    const { run } = head;
    if (run === undefined) return;
    if (hosted.agent.resumable !== true) return this.#giveUp(head, safeSentences.lost);
    if (run.attempt >= this.settings.lease.maxAttempts) return this.#giveUp(head, safeSentences.gaveUp);
    const { store, clock, lease, logger } = this.settings;
    const now = clock.now();
    const next = { ...run, attempt: run.attempt + 1 };
    const outcome = await this.committer.append({
      task: head.task,
      fence: head.fence,
      records: [],
      effects: [
        { effect: "lease", op: "revoke" },
        { effect: "lease", op: "acquire", holder: lease.holder, now, until: now + lease.ttl },
        { effect: "run", run: next },
      ],
    });
    // Another was quicker, or the task is over.
    if (!outcome.ok) return;
    const { taskId } = head.task;
    const input = (await store.read(head.task, taskId, { after: run.input - 1, limit: 1 }))?.records[0];
    const snapshot = await store.load(head.task, taskId, { artifacts: true });
    const checkpoint = (await store.head(head.task, taskId))?.checkpoint;
    if (input?.call === undefined || snapshot === undefined)
      throw new Error(`The message of task ${taskId} is not in its log`);
    logger.info("A task is resumed", { agent: head.task.agent, taskId, turn: run.turn, attempt: next.attempt });
    void this.start({
      hosted,
      key: head.task,
      contextId: head.contextId,
      freshContext: false,
      message: messageOf(input.kind, input.json),
      call: JSON.parse(input.call) as StoredCall,
      start: { seq: outcome.seq, state: snapshot.head.state, fence: outcome.fence, run: next, mayHaveMessages: true },
      // The first turn made the task: to the agent there was none before, whatever its attempt.
      ...(run.turn > 1 && { task: snapshot.task }),
      ...(checkpoint !== undefined && { checkpoint }),
    }).execute();
  }

  /** Nothing stays WORKING for ever: a task that cannot go on fails, and says why. */
  async #giveUp(head: TaskHead, sentence: string): Promise<void> {
    const { clock, logger } = this.settings;
    const { run, contextId } = head;
    const { taskId } = head.task;
    const origin = {
      taskId,
      contextId,
      turn: run?.turn ?? 1,
      attempt: run?.attempt ?? 1,
      extensions: [],
      trace: undefined,
    };
    const record = statusRecord(
      origin,
      { state: "TASK_STATE_FAILED", message: { parts: [{ text: sentence }] } },
      "system",
      `${taskId}-${origin.turn}-system`,
      Math.max(clock.now(), head.statusTime),
    );
    logger.warn("A task was lost", { agent: head.task.agent, taskId, holder: head.holder, sentence });
    // Under the fence that was seen: the run may have ended its turn, or somebody else may have taken it over.
    await this.endTask(head, record, head.fence);
  }

  /** Ends a task from outside its run: for good, whatever its agent does (D6). */
  async endTask(head: TaskHead, record: ReturnType<typeof statusRecord>, fence?: number): Promise<boolean> {
    const { taskId } = head.task;
    const outcome = await this.committer.append(
      {
        task: head.task,
        ...(fence !== undefined && { fence }),
        records: [record],
        effects: [
          { effect: "run", run: null },
          { effect: "checkpoint", value: null },
          { effect: "lease", op: "revoke" },
        ],
      },
      (stored) => {
        if (!stored.ok) return;
        this.board.find(taskId)?.add(record, stored.seq);
        this.#running.get(taskId)?.lose("canceled");
      },
    );
    return outcome.ok;
  }

  /** Lets turns end by themselves for `grace` milliseconds, then stops those that have not. */
  async stop(grace: number): Promise<void> {
    this.#stopping = true;
    const running = [...this.#running.values()];
    if (grace > 0 && running.length > 0) await this.#patience(running, grace);
    await Promise.all([...this.#running.values()].map((run) => run.stop()));
    await Promise.all(running.map((run) => run.done));
  }

  async #patience(running: readonly Run[], ms: number): Promise<void> {
    const over = deferred<void>();
    const takeBack = this.settings.clock.after(ms, () => over.resolve());
    await Promise.race([Promise.all(running.map((run) => run.done)), over.promise]);
    takeBack();
  }
}

function messageOf(kind: string, json: string): Message {
  const event = JSON.parse(json) as { history?: readonly Message[] } | Message;
  return kind === "task" ? ((event as { history: readonly Message[] }).history[0] as Message) : (event as Message);
}
