import { deferred } from "../../base/index.ts";
import {
  A2AError,
  contentHash,
  invalidParams,
  isInterrupted,
  isTerminal,
  type Message,
  type NewRecord,
  type SendMessageRequest,
} from "../../model/index.ts";
import type { CallContext, Principal } from "../../protocol/index.ts";
import type { OnceEffect, OnceRecord, Owner, TaskHead, TaskKey } from "../../store/index.ts";
import { BoundedMap } from "../bounded-map.ts";
import { ChurnMap } from "../churn-map.ts";
import { sizeOf, taskIsFull } from "../bytes.ts";
import { activate, checkSend, type CheckedAgent } from "./checks.ts";
import { hasMovedOn, wantedGeneration } from "../log/generations.ts";
import { messageRecord, statusRecord, storedPrincipal, type Origin, type StoredCall } from "../log/records.ts";
import { replyWindow } from "../options.ts";
import type { Asker } from "../run/run.ts";
import type { Runs } from "../supervise/runs.ts";

/** What became of a message: it was answered, or it stands in the log of a task. */
export type Accepted =
  | { readonly kind: "message"; readonly message: Message }
  | {
      readonly kind: "task";
      readonly task: TaskKey;
      readonly contextId: string;
      /** `seq` of the message. */
      readonly input: number;
      /** All that there is of a task that was made, worked on and left in one commit: its answer, without a look into the store. */
      readonly log: readonly NewRecord[] | undefined;
      /** Whether this message made the task, just now: its log from the first record on is news to the caller. */
      readonly made: boolean;
    };

/** A message that is taken in: nothing refuses it any more, and its answer comes. Boxed, so that awaiting one is not awaiting the other. */
export interface Admission {
  readonly answer: Promise<Accepted>;
}

/** A message on its way in. */
interface Send {
  readonly hosted: CheckedAgent;
  readonly owner: Owner;
  readonly request: SendMessageRequest;
  readonly call: StoredCall;
  readonly principal: Principal;
}

/** What of the budget is taken for a message: until it is stored, or, passed on to its run, until that is over. */
interface Held {
  readonly bytes: number;
  passedOn: boolean;
}

/** How a message is told from others, and what there is of it before its answer. */
interface InFlight {
  /** Its key in the store, and that with its owner. */
  readonly key: string;
  readonly name: string;
  readonly hash: string;
  /** Wall time of its arrival: keys in the store run out by it. */
  readonly since: number;
  admission: Admission | Promise<Admission> | undefined;
}

interface RememberedReply {
  readonly hash: string;
  /** Monotonic time. */
  readonly until: number;
  readonly message: Message;
  /** About what it takes in memory, with its key. */
  readonly bytes: number;
}

/** Takes messages in: once each (D8), as the first of a task or as the next of one (A2A 1.0 §3.4). */
export class Sends {
  readonly #runs: Runs;
  readonly #inFlight = new ChurnMap<string, InFlight>();
  readonly #replies: BoundedMap<string, RememberedReply>;

  constructor(runs: Runs) {
    this.#runs = runs;
    const { replies, replyBytes } = runs.settings.dedupe;
    this.#replies = new BoundedMap(replies, replyBytes);
  }

  /** Throws or rejects when the message is refused. The answer resolves when the message is safe: answered, or stored. */
  accept(
    hosted: CheckedAgent,
    owner: Owner,
    request: SendMessageRequest,
    context: CallContext,
  ): Admission | Promise<Admission> {
    checkSend(hosted, request);
    const { dedupe, clock, store } = this.#runs.settings;
    const { principal } = context;
    const send: Send = { hosted, owner, request, call: storedCall(hosted, request, context), principal };
    if (!dedupe.on) return this.#take(send, undefined, undefined);

    const { message } = request;
    const hash = contentHash(message);
    const key = onceKey(message, dedupe.onConflict === "accept" ? hash : "");
    // No id holds NUL.
    const name = `${owner.agent}\0${owner.owner}\0${key}`;
    const flight: InFlight = { key, name, hash, since: clock.now(), admission: undefined };
    const before = this.#inFlight.get(name);
    if (before?.admission !== undefined) {
      checkContent(before.hash, hash);
      return before.admission;
    }
    const reply = this.#replies.get(name);
    if (reply !== undefined && reply.until > clock.elapsed()) {
      checkContent(reply.hash, hash);
      return answered({ kind: "message", message: reply.message });
    }
    this.#inFlight.set(name, flight);
    try {
      // What a store has at hand is not waited for: a promise more for each message is a fifth of its CPU.
      const once = store.once(owner, key, flight.since);
      flight.admission = once instanceof Promise ? this.#wait(send, flight, once) : this.#admit(send, flight, once);
      return flight.admission;
    } catch (error) {
      this.#landed(flight);
      throw error;
    }
  }

  async #wait(send: Send, flight: InFlight, once: Promise<OnceRecord | undefined>): Promise<Admission> {
    try {
      return await this.#admit(send, flight, await once);
    } catch (error) {
      this.#landed(flight);
      throw error;
    }
  }

  /** `once`: what the store knows of its key. */
  #admit(send: Send, flight: InFlight, once: OnceRecord | undefined): Admission | Promise<Admission> {
    const { key, hash, since } = flight;
    if (once !== undefined) {
      checkContent(once.hash, hash);
      this.#landed(flight);
      return this.#join(send.owner, once).then(answered);
    }
    const { window } = this.#runs.settings.dedupe;
    const until = window === undefined ? {} : { until: since + window };
    return this.#take(send, { effect: "once", key, hash, now: since, ...until }, flight);
  }

  /** It is known what became of a message: from here on the store, or the memory of direct replies, tells. */
  #landed(flight: InFlight, reply?: Message): void {
    const { name, hash } = flight;
    if (this.#inFlight.get(name) === flight) this.#inFlight.delete(name);
    if (reply === undefined) return;
    const { settings } = this.#runs;
    // What is in the store is found there, by its key.
    if (settings.conversations === "store") return;
    const until = settings.clock.elapsed() + replyWindow(settings);
    this.#replies.set(name, { hash, until, message: reply, bytes: sizeOf(reply) + name.length });
  }

  /** The answer that the first one got, or will get. */
  async #join(owner: Owner, once: OnceRecord): Promise<Accepted> {
    if (once.answer !== undefined) return { kind: "message", message: JSON.parse(once.answer) as Message };
    const taskId = once.taskId ?? "";
    const head = await this.#runs.settings.store.head(owner, taskId);
    if (head === undefined) throw notFound(taskId);
    const input = beganTask(once) ? 1 : once.seq;
    return { kind: "task", task: head.task, contextId: head.contextId, input, log: undefined, made: false };
  }

  /** Another process was quicker under the same key: its answer, where it was asked the same. */
  async #joinOther(owner: Owner, found: OnceRecord, hash: string | undefined): Promise<Accepted> {
    checkContent(found.hash, hash);
    return this.#join(owner, found);
  }

  #take(send: Send, once: OnceEffect | undefined, flight: InFlight | undefined): Admission | Promise<Admission> {
    const { taskId } = send.request.message;
    if (taskId === undefined) return this.#begin(send, once, flight);
    return this.#followOnce(send, { taskId, ...send.owner }, once, flight);
  }

  /** A message that belongs to no task yet: the agent answers it, or makes one. No promise where there is room for it. */
  #begin(send: Send, once: OnceEffect | undefined, flight: InFlight | undefined): Admission | Promise<Admission> {
    const { budget } = this.#runs;
    const { owner } = send.owner;
    const bytes = sizeOf(send.request.message);
    if (budget.tryTake(owner, bytes)) return this.#start(send, bytes, once, flight);
    return budget
      .take(owner, bytes)
      .then(() => this.#start(send, bytes, once, flight))
      .catch((error: unknown) => {
        if (flight !== undefined) this.#landed(flight);
        throw error;
      });
  }

  /** `bytes`: what of the budget is taken for it. */
  #start(send: Send, bytes: number, once: OnceEffect | undefined, flight: InFlight | undefined): Admission {
    const { hosted, owner, call, principal } = send;
    const { message, configuration } = send.request;
    const { ids, clock, directReplyWithin } = this.#runs.settings;
    const contextId = message.contextId ?? ids.next();
    const task = { agent: owner.agent, owner: owner.owner, taskId: ids.next() };
    const answer = deferred<Accepted>();
    let takeBack: (() => void) | undefined;
    const over = (reply?: Message): void => {
      takeBack?.();
      if (flight !== undefined) this.#landed(flight, reply);
    };
    const asker: Asker = {
      told: (first) => {
        over(first.kind === "message" ? first.message : undefined);
        if (first.kind === "message") answer.resolve(first);
        else if (first.kind === "duplicate") answer.resolve(this.#joinOther(owner, first.once, once?.hash));
        else answer.resolve({ kind: "task", task, contextId, input: 1, log: first.log, made: true });
      },
      failed: (error) => {
        over();
        // Whoever asked may be gone; then nobody hears that it failed.
        answer.promise.catch(() => {});
        answer.reject(error);
      },
    };
    const run = this.#runs.start({
      hosted,
      key: task,
      bytes,
      contextId,
      freshContext: message.contextId === undefined,
      message: message.contextId === undefined ? inContext(message, contextId) : message,
      call,
      principal,
      asker,
      once,
    });
    if (hosted.agent.mayReplyDirectly === false) run.makeTask();
    else if (configuration?.returnImmediately === true) takeBack = clock.after(directReplyWithin, () => run.makeTask());
    void run.execute();
    return { answer: answer.promise };
  }

  async #followOnce(
    send: Send,
    task: TaskKey,
    once: OnceEffect | undefined,
    flight: InFlight | undefined,
  ): Promise<Admission> {
    try {
      return answered(await this.#follow(send, task, once));
    } finally {
      if (flight !== undefined) this.#landed(flight);
    }
  }

  /** A message for a task that is there (§3.4.3). Tries again when the task moves between the look and the append. */
  async #follow(
    { hosted, request, call, principal }: Send,
    task: TaskKey,
    once: OnceEffect | undefined,
  ): Promise<Accepted> {
    const { settings, budget } = this.#runs;
    const { store } = settings;
    const { message } = request;
    const wanted = wantedGeneration(request, call.version);
    for (;;) {
      const head = await store.head(task, task.taskId);
      if (head === undefined) throw notFound(task.taskId);
      checkContext(message, head);
      if (wanted !== undefined && wanted !== head.generation) throw hasMovedOn(head, wanted);
      if (isTerminal(head.state)) throw isOver(head);
      const whole = inContext(message, head.contextId);
      const held = { bytes: sizeOf(message) + (head.run === undefined ? head.bytes : 0), passedOn: false };
      if (!budget.tryTake(task.owner, held.bytes)) await budget.take(task.owner, held.bytes);
      try {
        const accepted =
          head.run === undefined
            ? await this.#wake(hosted, head, whole, { call, principal }, once, held)
            : await this.#queue(head, whole, call, once, wanted !== undefined);
        if (accepted !== undefined) return accepted;
      } finally {
        if (!held.passedOn) budget.give(task.owner, held.bytes);
      }
    }
  }

  /** The task is being worked on: the message waits in its log for the next turn. `still`: only if nothing has happened since. */
  async #queue(
    head: TaskHead,
    message: Message,
    call: StoredCall,
    once: OnceEffect | undefined,
    still: boolean,
  ): Promise<Accepted | undefined> {
    const { clock, limits } = this.#runs.settings;
    const record = messageRecord(originOf(head, head.run?.turn ?? 1, call), message, call, clock.now());
    const { board, committer } = this.#runs;
    const effects = once === undefined ? [] : [once];
    // Under the fence of the run that is to take it up: were that run to end before, the message would be lost.
    const outcome = await committer.append(
      {
        task: head.task,
        fence: head.fence,
        ...(still && { expect: head.seq }),
        records: [record],
        maxBytes: limits.taskBytes,
        effects,
      },
      (stored) => {
        if (stored.ok) board.find(head.task.taskId)?.add(record, stored.seq);
      },
    );
    if (outcome.ok) return acceptedBy(head, outcome.seq);
    return this.#retry(head, outcome.reason, outcome.once, once?.hash);
  }

  /** The task waits for its user: the message leaves that state (D11), and its turn begins. */
  async #wake(
    hosted: CheckedAgent,
    head: TaskHead,
    message: Message,
    { call, principal }: Pick<Send, "call" | "principal">,
    once: OnceEffect | undefined,
    held: Held,
  ): Promise<Accepted | undefined> {
    const { store, clock, lease, limits } = this.#runs.settings;
    const { taskId } = head.task;
    const last = await store.read(head.task, taskId, { after: head.seq - 1, limit: 1 });
    const turn = (last?.records[0]?.turn ?? 0) + 1;
    const origin = originOf(head, turn, call);
    const now = Math.max(clock.now(), head.statusTime);
    const working = isInterrupted(head.state)
      ? [statusRecord(origin, { state: "TASK_STATE_WORKING" }, "system", "", now)]
      : [];
    const records = [...working, messageRecord(origin, message, call, now)];
    const run = { turn, attempt: 1, input: head.seq + records.length };
    const outcome = await this.#runs.committer.append({
      task: head.task,
      expect: head.seq,
      records,
      maxBytes: limits.taskBytes,
      effects: [
        { effect: "lease", op: "acquire", holder: lease.holder, now, until: now + lease.ttl },
        { effect: "run", run },
        ...(once === undefined ? [] : [once]),
      ],
    });
    if (!outcome.ok) return this.#retry(head, outcome.reason, outcome.once, once?.hash);
    const snapshot = await store.load(head.task, taskId, { artifacts: true });
    const started = this.#runs.start({
      hosted,
      key: head.task,
      bytes: held.bytes,
      contextId: head.contextId,
      freshContext: false,
      message,
      call,
      principal,
      start: { seq: outcome.seq, state: "TASK_STATE_WORKING", fence: outcome.fence, run, mayHaveMessages: false },
      ...(snapshot !== undefined && { task: snapshot.task }),
    });
    held.passedOn = true;
    void started.execute();
    return acceptedBy(head, outcome.seq);
  }

  /** `undefined`: try again. */
  async #retry(
    head: TaskHead,
    reason: string,
    found: OnceRecord | undefined,
    hash: string | undefined,
  ): Promise<Accepted | undefined> {
    if (reason === "terminal") throw isOver(head);
    if (reason === "full") throw taskIsFull(this.#runs.settings.limits.taskBytes);
    if (reason === "missing") throw notFound(head.task.taskId);
    if (reason !== "duplicate" || found === undefined) return undefined;
    checkContent(found.hash, hash);
    return this.#join(head.task, found);
  }
}

/**
 * `Object.assign` and no `{ ...message, contextId }`: a literal that spreads first and adds members after costs V8 a
 * hundred times as much, and garbage that grows old.
 */
function inContext(message: Message, contextId: string): Message {
  return Object.assign({}, message, { contextId });
}

/**
 * Names a message among those of its owner: by its id, and the task that it is for. Where other content under a used id is a new
 * message, by its content as well (`hash`), so that each of them joins its own first send (D8).
 */
function onceKey({ taskId = "", messageId }: Message, hash: string): string {
  return `${taskId.length}:${taskId}${messageId}${hash}`;
}

/** Refuses other content under a used id: only `onConflict: "refuse"` finds such a key. */
function checkContent(known: string, hash: string | undefined): void {
  if (known === hash) return;
  const description = "was used before, for a message with other content";
  throw invalidParams([{ field: "message.messageId", description }], "This messageId is taken");
}

function beganTask({ key }: OnceRecord): boolean {
  return key.startsWith("0:");
}

function answered(accepted: Accepted): Admission {
  return { answer: Promise.resolve(accepted) };
}

function acceptedBy({ task, contextId }: TaskHead, input: number): Accepted {
  return { kind: "task", task, contextId, input, log: undefined, made: false };
}

function originOf({ task, contextId }: TaskHead, turn: number, call: StoredCall): Origin {
  return { taskId: task.taskId, contextId, turn, attempt: 1, extensions: call.extensions, trace: call.trace };
}

const none: readonly string[] = [];

function storedCall(hosted: CheckedAgent, request: SendMessageRequest, context: CallContext): StoredCall {
  const call: StoredCall = {
    principal: storedPrincipal(context.principal, hosted.agent.keepClaims ?? none),
    version: context.version,
    extensions: activate(hosted, context),
    acceptedOutputModes: request.configuration?.acceptedOutputModes ?? none,
    metadata: request.metadata,
  };
  return context.trace === undefined ? call : { ...call, trace: context.trace };
}

/** §3.4.3: a task keeps its context. */
function checkContext(message: Message, head: TaskHead): void {
  if (message.contextId === undefined || message.contextId === head.contextId) return;
  throw invalidParams([{ field: "message.contextId", description: "is not the context of this task" }]);
}

export function notFound(taskId: string): A2AError {
  return new A2AError("TaskNotFound", undefined, { metadata: { taskId } });
}

function isOver({ task, state }: TaskHead): A2AError {
  const metadata = { taskId: task.taskId, state };
  return new A2AError("UnsupportedOperation", "This task is over and takes no more messages", { metadata });
}
