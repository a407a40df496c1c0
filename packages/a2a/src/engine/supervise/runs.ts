import { deferred } from "../../base/index.ts";
import { A2AError, type NewRecord } from "../../model/index.ts";
import { ByteBudget } from "../../protocol/index.ts";
import type { AppendItem, TaskHead } from "../../store/index.ts";
import { ChurnMap } from "../churn-map.ts";
import { LeaseWatch } from "./lease-watch.ts";
import type { Committer } from "../log/committer.ts";
import type { Conversations } from "../conversations.ts";
import type { Board } from "../log/live.ts";
import type { EngineSettings, HostedAgent } from "../options.ts";
import { lossOf } from "../log/writer.ts";
import { Pace } from "../run/pace.ts";
import { Recovery } from "./recovery.ts";
import { Run, type RunInit, type RunRooms } from "../run/run.ts";
import { WallWatch } from "./wall.ts";

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
  readonly #recovery: Recovery;
  /** What the runs of this process may hold, and the queue of those that wait for room. */
  readonly budget: ByteBudget;
  #stopping = false;

  constructor(rooms: RunsRooms) {
    this.settings = rooms.settings;
    this.committer = rooms.committer;
    this.board = rooms.board;
    const onOver = (over: Run): void => {
      if (this.#running.get(over.key.taskId) === over) this.#running.delete(over.key.taskId);
      this.budget.give(over.key.owner, over.bytes);
    };
    const { clock, lease, limits } = this.settings;
    this.budget = new ByteBudget(limits.totalBytes, clock);
    this.#wall = new WallWatch(clock);
    this.#leases = new LeaseWatch(clock, lease);
    this.#rooms = { ...rooms, pace: new Pace(clock), budget: this.budget, onOver };
    this.#recovery = new Recovery({
      ...rooms,
      leases: this.#leases,
      budget: this.budget,
      isRunning: (taskId) => this.#running.has(taskId),
      isStopping: () => this.#stopping,
      start: (init) => this.start(init),
      endTask: (head, record, fence) => this.endTask(head, record, fence),
    });
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

  /** Takes over tasks whose process is gone. */
  async recover(): Promise<void> {
    if (this.wallJumped()) await this.renew();
    await this.#recovery.look();
  }

  /** Ends a task from outside its run: for good, whatever its agent does (D6). */
  async endTask(head: TaskHead, record: NewRecord, fence?: number): Promise<boolean> {
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
    this.budget.close(new A2AError("Unavailable", "The server is stopping", { retryAfter: 1 }));
    const running = [...this.#running.values()];
    if (grace > 0 && running.length > 0) await this.#waitFor(running, grace);
    await Promise.all([...this.#running.values()].map((run) => run.stop()));
    await Promise.all(running.map((run) => run.done));
  }

  async #waitFor(running: readonly Run[], ms: number): Promise<void> {
    const over = deferred<void>();
    const takeBack = this.settings.clock.after(ms, () => over.resolve());
    await Promise.race([Promise.all(running.map((run) => run.done)), over.promise]);
    takeBack();
  }
}
