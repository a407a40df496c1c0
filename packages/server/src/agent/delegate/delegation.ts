import { A2AError, isTerminal, type Message, type Task } from "@parley/a2a/internal/model/index";
import {
  type AgentYield,
  type ArtifactEvent,
  type ClosedDelegation,
  type Delegated,
  type DelegateOptions,
  DelegationFailed,
  type Delegations,
  type DelegationWatch,
  type OpenDelegation,
  type StatusEvent,
  type TurnBase,
} from "@parley/a2a/internal/protocol/index";
import { DelegatedArtifacts } from "./artifacts.ts";
import {
  betweenStreams,
  CallFailed,
  type Came,
  DelegateCalls,
  goesOn,
  mayHaveArrived,
  mayPass,
  reasonOf,
  wasRefused,
} from "./calls.ts";
import {
  briefOf,
  DelegatedResult,
  failureOf,
  failureRow,
  idsOf,
  isIdle,
  isKept,
  messageRow,
  questionOf,
  shownOf,
  taskOf,
  taskRow,
} from "./events.ts";
import {
  addressHashesOf,
  addressOf,
  contentOf,
  type DelegateCall,
  type DelegatedContent,
  firstRow,
  hashOf,
  identify,
  type Identity,
  messageIdOf,
  messageOf,
  mistake,
  nameOf,
} from "./keys.ts";

/**
 * Delegates. `calls` are those of the turn in their order, and `at` is this one: of several with the same message, the order tells which is
 * which.
 */
export async function* delegate(
  turn: TurnBase,
  calls: readonly DelegateCall[],
  at: number,
  left: AbortSignal,
): AsyncGenerator<AgentYield, Delegated, void> {
  const call = calls[at] as DelegateCall;
  const rows = await turn.delegations();
  const identity = await identify(turn, calls, at, rows, left);
  const { key } = identity;
  if (rows.running.has(key))
    throw mistake(`two delegations at a time have the key ${JSON.stringify(call.options.key)}`);
  rows.running.add(key);
  rows.had.add(key);
  let watch: DelegationWatch | undefined;
  try {
    if (!rows.closed.has(key)) {
      watch = turn.watchDelegation?.({ card: call.client.card, parts: contentOf(call.message).parts });
    }
    return yield* new Delegation(turn, rows, { ...call, watch }, identity, left).run();
  } catch (error) {
    watch?.onEnd?.({ error });
    watch = undefined;
    throw error;
  } finally {
    // Also if the function leaves it, or the turn ends because this task asks the question.
    watch?.onEnd?.({});
    rows.running.delete(key);
  }
}

/** The message of a delegation, with files that the other agent can read. */
export class Outgoing {
  /** The one that was made last in this attempt. */
  last: Message | undefined;
  /** It has links to files: each time it is made it has others, and is another message to the other agent. */
  #hasLinks = false;
  readonly #turn: TurnBase;
  readonly #rows: Delegations;
  readonly #content: DelegatedContent;
  readonly #calls: Pick<DelegateCalls, "joins">;

  constructor(turn: TurnBase, rows: Delegations, content: DelegatedContent, calls: Pick<DelegateCalls, "joins">) {
    this.#calls = calls;
    this.#turn = turn;
    this.#rows = rows;
    this.#content = content;
  }

  async make(row: OpenDelegation): Promise<Message> {
    const message = await messageOf(this.#rows, this.#content, row);
    const { outside } = this.#turn;
    if (outside === undefined) return (this.last = message);
    this.#hasLinks = outside.hasLinks(message.parts);
    return (this.last = { ...message, parts: await outside.sendable(message.parts) });
  }

  /** Whether a message that is sent twice arrives once. */
  get joins(): boolean {
    return this.#calls.joins && !this.#hasLinks;
  }

  /** The same message as before; `undefined` if it would be another one. */
  get same(): Message | undefined {
    return this.#hasLinks ? undefined : this.last;
  }
}

/** One delegation, in one attempt of the turn. */
class Delegation {
  readonly #turn: TurnBase;
  readonly #rows: Delegations;
  readonly #options: DelegateOptions;
  readonly #content: DelegatedContent;
  readonly #key: string;
  readonly #doubt: Identity["doubt"];
  readonly #agent: string;
  readonly #init: Parameters<typeof firstRow>[0];
  readonly #calls: DelegateCalls;
  readonly #outgoing: Outgoing;
  readonly #signal: AbortSignal;
  readonly #watch: DelegationWatch | undefined;
  #row!: OpenDelegation;
  #artifacts!: DelegatedArtifacts;
  /** The other agent has, or may have, a task that is not over. */
  #isOpen = false;
  /** The message may have arrived, in this attempt or in an earlier one. */
  #mayHaveIt = false;
  /** The first message was sent in this attempt, and the other agent has shown no work so far. */
  #isIdle = false;

  constructor(turn: TurnBase, rows: Delegations, call: DelegateCall, { key, doubt }: Identity, left: AbortSignal) {
    const { client, message, options, watch } = call;
    this.#watch = watch;
    this.#turn = turn;
    this.#rows = rows;
    this.#options = options;
    this.#content = contentOf(message);
    this.#key = key;
    this.#doubt = doubt;
    this.#agent = nameOf(client);
    const agent = this.#agent;
    const [address, addresses] = [addressOf(client), addressHashesOf(client)];
    this.#init = { turn, rows, options, content: this.#content, key, agent, address, addresses };
    this.#signal = AbortSignal.any([turn.signal, left]);
    this.#calls = new DelegateCalls(turn, client, options, this.#signal, watch?.extensions);
    this.#outgoing = new Outgoing(turn, rows, this.#content, this.#calls);
  }

  async *run(): AsyncGenerator<AgentYield, Delegated, void> {
    const closed = this.#rows.closed.get(this.#key);
    if (closed !== undefined) return this.#again(closed);
    let stopWaiting = (): void => {};
    try {
      const source = await this.#begin();
      stopWaiting = this.#rows.wait();
      this.#rows.onCancel(() => this.#cancel());
      return yield* this.#follow(source);
    } catch (thrown) {
      const error = thrown instanceof CallFailed ? this.#refused(thrown.cause) : thrown;
      if (error instanceof DelegationFailed && this.#isOpen) await this.#fail(error);
      throw error;
    } finally {
      stopWaiting();
      this.#leave();
    }
  }

  /** Sends the message, or goes on where an earlier attempt or turn was. */
  async #begin(): Promise<AsyncGenerator<Came, void, void>> {
    const stored = this.#rows.open.get(this.#key);
    if (stored === undefined) {
      this.#isIdle = this.#content.taskId === undefined;
      if (this.#calls.hops !== undefined) return this.#sendFirst(await firstRow(this.#init));
      throw new DelegationFailed("loop", `${this.#agent} was not asked: the request has come through too many agents.`);
    }
    this.#take(stored);
    if (stored.auth === true) this.#rows.authorizations.set(this.#key, undefined);
    const { asked, unsentAnswer, ...row } = stored;
    const answer = unsentAnswer ?? this.#rows.answer;
    if (asked === true && answer !== undefined) {
      const round = row.round + 1;
      return this.#send({
        ...row,
        round,
        answer,
        messageId: await messageIdOf(this.#turn, this.#rows, this.#key, round),
        unsure: true,
      });
    }
    return stored.unsure === true ? this.#sendUnlessArrived() : this.#calls.follow(stored);
  }

  #take(row: OpenDelegation): void {
    this.#row = row;
    this.#isOpen = true;
    this.#artifacts = new DelegatedArtifacts(this.#options, row);
  }

  /** Stores that the message is about to be sent, then sends it. */
  async #send(row: OpenDelegation): Promise<AsyncGenerator<Came, void, void>> {
    await this.#rows.store(this.#key, row);
    if (this.#artifacts === undefined) this.#take(row);
    else this.#row = row;
    this.#signal.throwIfAborted();
    return this.#calls.send(await this.#outgoing.make(row));
  }

  /** Sends the message, unless the agent may be one that has it already. */
  async #sendFirst(row: OpenDelegation): Promise<AsyncGenerator<Came, void, void>> {
    if (this.#doubt === undefined) return this.#send(row);
    this.#mayHaveIt = true;
    const { sent } = this.#doubt;
    if (sent !== undefined && this.#calls.joins) {
      // If it is that agent, it joins the message with the first one. To another agent the message is new.
      const { messageId, contextId } = sent;
      const { contextId: _, ...rest } = row;
      const same = { ...rest, messageId, ...(contextId !== undefined && { contextId }) };
      await this.#outgoing.make(same);
      if (this.#outgoing.joins) return this.#send(same);
    }
    if (this.#options.onUncertain === "resend") return this.#send(row);
    throw this.#uncertain();
  }

  #uncertain(): DelegationFailed {
    return new DelegationFailed("uncertain", `It is not known whether ${this.#agent} has received its message.`);
  }

  /** It is not known whether the message arrived. */
  async #sendUnlessArrived(): Promise<AsyncGenerator<Came, void, void>> {
    const row = this.#row;
    this.#mayHaveIt = true;
    const isSame = row.answer !== undefined || row.hash === hashOf(this.#content);
    if (isSame && this.#outgoing.last === undefined) await this.#outgoing.make(row);
    if (isSame && this.#outgoing.joins) return this.#send(row);
    const taskId = await this.#calls.find(row);
    if (typeof taskId === "string") {
      const { unsure: _, ...sure } = row;
      this.#row = { ...sure, taskId };
      return this.#calls.follow(this.#row);
    }
    if (isSame && (taskId === false || this.#options.onUncertain === "resend")) return this.#send(row);
    throw this.#uncertain();
  }

  async *#follow(begin: AsyncGenerator<Came, void, void>): AsyncGenerator<AgentYield, Delegated, void> {
    for (let source = begin, failures = 0, since = 0; ;) {
      try {
        for await (const came of source) {
          failures = 0;
          const result = yield* this.#apply(came);
          if (result !== undefined) return result;
        }
        const { taskId } = this.#row;
        if (taskId === undefined)
          throw new CallFailed(new A2AError("InvalidResponse", "The other agent sent no event"));
        await this.#calls.pause(betweenStreams);
        source = this.#calls.poll(taskId);
      } catch (error) {
        if (!(error instanceof CallFailed)) throw error;
        failures += 1;
        if (failures === 1) since = this.#calls.now();
        if (!this.#calls.mayRetry(since) || !this.#mayGoOn(error.cause, failures)) throw error;
        if (failures > 1 || this.#row.unsure !== true) await this.#calls.rest(failures);
        source = this.#row.unsure === true ? await this.#sendUnlessArrived() : this.#calls.follow(this.#row);
      }
    }
  }

  /** Whether another call may help, where the other agent has the message, or may have it. It may restart just now. */
  #mayGoOn(cause: unknown, failures: number): boolean {
    if (!mayPass(cause)) return false;
    if (this.#row.unsure !== true) return this.#row.taskId !== undefined;
    this.#mayHaveIt ||= mayHaveArrived(cause);
    return this.#mayHaveIt && (this.#outgoing.joins || failures === 1);
  }

  #refused(cause: unknown): DelegationFailed {
    const untaken = this.#isIdle && !this.#mayHaveIt && this.#row.unsure === true && wasRefused(cause);
    const text = `${this.#agent} could not do its part (${reasonOf(cause)}).`;
    return new DelegationFailed("refused", text, { cause, untaken });
  }

  /** Takes an event. Returns the result once there is one. */
  async *#apply({ event, seq }: Came): AsyncGenerator<AgentYield, Delegated | undefined, void> {
    const heard = this.#watch?.onEvent?.(event);
    if (heard !== undefined) await this.#calls.until(heard);
    if (event.message !== undefined) return this.#replied(event.message);
    const known = this.#row.taskId !== undefined && this.#row.unsure !== true;
    const { unsure: _, ...row } = this.#row;
    this.#row = { ...row, ...idsOf(event) };
    // A whole task may be further than the event of the last number.
    if (event.task !== undefined) delete (this.#row as { seq?: number }).seq;
    const status = event.task?.status ?? event.statusUpdate?.status;
    const ends = status !== undefined && isTerminal(status.state);
    if (event.task !== undefined) {
      for (const artifact of this.#artifacts.snapshot(event.task, ends)) yield this.#delegated(artifact);
    } else if (event.artifactUpdate !== undefined) {
      this.#isIdle = false;
      const artifact = this.#artifacts.chunk(event.artifactUpdate);
      this.#at(seq);
      if (artifact !== undefined) yield this.#delegated(artifact);
      else if (!known) yield this.#delegated();
      return undefined;
    }
    this.#at(seq);
    if (status === undefined) return undefined;
    this.#isIdle &&= isIdle(status.state, event.task);
    const showing = { key: this.#key, options: this.#options, authorizations: this.#rows.authorizations };
    const shown = shownOf(status, this.#row, showing);
    this.#row = shown.row;
    for (const each of shown.events) yield this.#delegated(each);
    if (ends) return this.#ended({ ...briefOf(taskOf(this.#row, event)), status });
    if (status.state !== "TASK_STATE_INPUT_REQUIRED") {
      if (!known) yield this.#delegated();
      return undefined;
    }
    if (this.#options.questions === false) return this.#ended({ ...briefOf(taskOf(this.#row, event)), status });
    const question = status.message?.messageId;
    // Before it works on the answer, an agent may show the question once more.
    if (question !== undefined && this.#row.answer !== undefined && question === this.#row.question) return undefined;
    // The question ends the turn. The next one has the answer to this question alone.
    await this.#rows.keepAnswer();
    this.#row = { ...this.#row, asked: true, ...(question !== undefined && isKept(question) && { question }) };
    yield this.#delegated(questionOf(status));
    // The engine ends the function at the question.
    throw new A2AError("Aborted", "The turn is over: it asks the question of another agent");
  }

  #at(seq: number | undefined): void {
    if (seq !== undefined) this.#row = { ...this.#row, seq };
  }

  #delegated(event?: StatusEvent | ArtifactEvent): AgentYield {
    this.#row = { ...this.#row, ...this.#artifacts.row };
    return { kind: "delegated", key: this.#key, row: this.#row, ...(event && { event }) };
  }

  async #replied(message: Message): Promise<Delegated> {
    this.#isOpen = false;
    const row = messageRow(this.#row, message);
    // A reply that is too large to keep is asked for again after a restart.
    if (row !== undefined) await this.#rows.close(this.#key, row);
    return new DelegatedResult({ task: undefined, message }, []);
  }

  async #ended(task: Task): Promise<Delegated> {
    const failure = failureOf(this.#agent, task, this.#isIdle);
    if (failure !== undefined) throw failure;
    const artifacts = this.#artifacts;
    this.#isOpen = false;
    const whole = artifacts.isLarge ? undefined : (artifacts.whole ?? (await this.#read(task)).artifacts ?? []);
    await this.#rows.close(this.#key, taskRow(this.#row, task, whole, artifacts.bytes));
    return new DelegatedResult({ task, message: undefined }, whole);
  }

  /** The result of a delegation that was over before. */
  async #again({ result, failure }: ClosedDelegation): Promise<Delegated> {
    if (failure !== undefined) throw new DelegationFailed(failure.kind, failure.text, failure);
    const { message, task, artifacts, bytes = 0 } = result ?? {};
    const isLarge = bytes > (this.#options.resultBytes ?? 1 << 20);
    if (task === undefined || artifacts !== undefined || isLarge) {
      return new DelegatedResult({ task, message }, isLarge ? undefined : (artifacts ?? []));
    }
    const read = await this.#read(task);
    return new DelegatedResult({ task: briefOf(read), message: undefined }, read.artifacts ?? []);
  }

  async #read(task: Task): Promise<Task> {
    try {
      return await this.#calls.task(task.id);
    } catch (error) {
      throw error instanceof CallFailed ? this.#refused(error.cause) : error;
    }
  }

  /** Keeps the failure, so that a function that is called again gets it again. */
  async #fail(failure: DelegationFailed): Promise<void> {
    this.#isOpen = false;
    // To look for a task that it does not have would send it the message.
    if (failure.kind === "refused" && !failure.untaken && this.#options.cancel !== "canceled") this.#cancel();
    this.#rows.authorizations.delete(this.#key);
    await this.#rows.close(this.#key, failureRow(this.#row, failure));
  }

  /** The delegation is over, or its turn does not wait for it any more. */
  #leave(): void {
    if (!this.#isOpen) return;
    const { signal } = this.#turn;
    const kind = signal.aborted ? signal.reason?.kind : this.#rows.asking ? "asking" : "left";
    if (kind === undefined || goesOn.has(kind)) return;
    if (kind !== "canceled" && this.#options.cancel === "canceled") return;
    this.#cancel();
    if (kind !== "left") return;
    const failure = new DelegationFailed("canceled", `${this.#agent} was told to stop.`);
    // If the turn is over, nothing is stored, and nobody asks for it.
    this.#rows.close(this.#key, failureRow(this.#row, failure)).catch(() => {});
  }

  #cancel(): void {
    if (this.#options.cancel !== "never") void this.#calls.cancel(this.#row, this.#outgoing.same);
  }
}
