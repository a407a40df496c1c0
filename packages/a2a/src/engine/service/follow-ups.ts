import { invalidParams, isInterrupted, isTerminal, type Message, type NewRecord } from "../../model/index.ts";
import type { AppendOutcome, StoredRun, TaskAppend, TaskHead, TaskKey } from "../../store/index.ts";
import { sizeOf, taskIsFull } from "../bytes.ts";
import { hasMovedOn, wantedGeneration } from "./generation-match.ts";
import { messageRecord, statusRecord } from "../log/index.ts";
import { taskIsOver, taskNotFound } from "../refusals.ts";
import { inContext, joined, originOf, type Accepted, type Send, type SendRooms } from "./admission.ts";
import type { Retries } from "./retries.ts";

/** A message, and the task that it is for as it was found. */
interface FollowUp {
  readonly send: Send;
  readonly head: TaskHead;
  /** The message, in the context of its task. */
  readonly message: Message;
  /** It may be stored only if nothing has happened to the task since (`ifGenerationMatch` of the 1.1 draft). */
  readonly unchanged: boolean;
  /** What of the budget is taken for it: until it is stored, or, once a run has it (`passedOn`), until that is over. */
  readonly bytes: number;
  passedOn: boolean;
}

/** Takes in messages for tasks that are there (A2A 1.0 §3.4.3). */
export class FollowUps {
  readonly #rooms: SendRooms;
  readonly #retries: Retries;

  constructor(rooms: SendRooms, retries: Retries) {
    this.#rooms = rooms;
    this.#retries = retries;
  }

  /** Tries again when the task moves between being read and the append. */
  async take(send: Send, task: TaskKey): Promise<Accepted> {
    const { store } = this.#rooms.settings;
    const { budget } = this.#rooms;
    const { message } = send.request;
    const wanted = wantedGeneration(send.request, send.call.version);
    for (;;) {
      const head = await store.head(task, task.taskId);
      if (head === undefined) throw taskNotFound(task.taskId);
      checkContext(message, head);
      if (wanted !== undefined && wanted !== head.generation) throw hasMovedOn(head, wanted);
      if (isTerminal(head.state)) throw taskIsOver(head);
      const bytes = sizeOf(message) + (head.run === undefined ? head.bytes : 0);
      const whole = inContext(message, head.contextId);
      const next: FollowUp = { send, head, message: whole, unchanged: wanted !== undefined, bytes, passedOn: false };
      if (!budget.tryTake(task.owner, bytes)) await budget.take(task.owner, bytes);
      try {
        const accepted = await (head.run === undefined ? this.#wake(next) : this.#queue(next));
        if (accepted !== undefined) return accepted;
      } finally {
        if (!next.passedOn) budget.give(task.owner, bytes);
      }
    }
  }

  /** The task is being worked on: the message waits in its log for the next turn. */
  async #queue(followUp: FollowUp): Promise<Accepted | undefined> {
    const { send, head, message, unchanged } = followUp;
    const { committer, liveLogs, settings } = this.#rooms;
    const { call, attempt } = send;
    const record = messageRecord(originOf(head, head.run?.turn ?? 1, call), message, call, settings.clock.now());
    const item: TaskAppend = {
      task: head.task,
      // Under the fence of the run that is to take it up: were that run to end before, the message would be lost.
      fence: head.fence,
      ...(unchanged && { expect: head.seq }),
      records: [record],
      maxBytes: settings.limits.taskBytes,
      effects: attempt === undefined ? [] : [attempt.once],
    };
    const outcome = await committer.append(item, (stored) => {
      if (stored.ok) liveLogs.find(head.task.taskId)?.add(record, stored.seq);
    });
    return outcome.ok ? joined(head, outcome.seq) : this.#refused(followUp, outcome);
  }

  /** The task waits for its user: the message takes it out of that state, and its turn begins. */
  async #wake(followUp: FollowUp): Promise<Accepted | undefined> {
    const { send, head } = followUp;
    const { committer, settings } = this.#rooms;
    const { clock, lease, limits } = settings;
    const { attempt } = send;
    const turn = (await this.#lastTurn(head)) + 1;
    const now = Math.max(clock.now(), head.statusTime);
    const records = recordsOf(followUp, turn, now);
    const run = { turn, attempt: 1, input: head.seq + records.length };
    const outcome = await committer.append({
      task: head.task,
      expect: head.seq,
      records,
      maxBytes: limits.taskBytes,
      effects: [
        { effect: "lease", op: "acquire", holder: lease.holder, now, until: now + lease.ttl },
        { effect: "run", run },
        ...(attempt === undefined ? [] : [attempt.once]),
      ],
    });
    if (!outcome.ok) return this.#refused(followUp, outcome);
    await this.#start(followUp, run, outcome);
    return joined(head, outcome.seq);
  }

  async #start(
    followUp: FollowUp,
    run: StoredRun,
    { seq, fence }: Extract<AppendOutcome, { readonly ok: true }>,
  ): Promise<void> {
    const { send, head, message, bytes } = followUp;
    const { settings, runs } = this.#rooms;
    const snapshot = await settings.store.load(head.task, head.task.taskId, { artifacts: true });
    runs.start({
      hosted: send.hosted,
      key: head.task,
      bytes,
      contextId: head.contextId,
      message,
      call: send.call,
      principal: send.principal,
      start: { seq, state: "TASK_STATE_WORKING", fence, run, mayHaveMessages: false },
      ...(snapshot !== undefined && { task: snapshot.task }),
    });
    followUp.passedOn = true;
  }

  /** The turn that the last record of a task belongs to. */
  async #lastTurn({ task, seq }: TaskHead): Promise<number> {
    const page = await this.#rooms.settings.store.read(task, task.taskId, { after: seq - 1, limit: 1 });
    return page?.records[0]?.turn ?? 0;
  }

  /** Throws what the caller has to hear; `undefined`: the task has moved, try again. */
  async #refused(
    { send, head }: FollowUp,
    { reason, once }: Extract<AppendOutcome, { readonly ok: false }>,
  ): Promise<Accepted | undefined> {
    if (reason === "terminal") throw taskIsOver(head);
    if (reason === "full") throw taskIsFull(this.#rooms.settings.limits.taskBytes);
    if (reason === "missing") throw taskNotFound(head.task.taskId);
    if (reason !== "duplicate" || once === undefined) return undefined;
    return this.#retries.join(head.task, once, send.attempt);
  }
}

/** What a message that begins a turn adds to the log. */
function recordsOf({ send, head, message }: FollowUp, turn: number, now: number): readonly NewRecord[] {
  const { call } = send;
  const origin = originOf(head, turn, call);
  const record = messageRecord(origin, message, call, now);
  if (!isInterrupted(head.state)) return [record];
  return [statusRecord(origin, { state: "TASK_STATE_WORKING" }, "system", "", now), record];
}

/** §3.4.3: a task keeps its context. */
function checkContext(message: Message, head: TaskHead): void {
  if (message.contextId === undefined || message.contextId === head.contextId) return;
  throw invalidParams([{ field: "message.contextId", description: "is not the context of this task" }]);
}
