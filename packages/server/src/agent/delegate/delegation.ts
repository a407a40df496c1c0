import { A2AError, isTerminal, toA2AError, type Message, type Task } from "@parley/a2a/internal/model/index";
import {
  type AgentYield,
  type ArtifactEvent,
  type ClosedDelegation,
  type Delegated,
  type DelegateOptions,
  DelegationFailed,
  type Delegations,
  type DelegationWatch,
  type Observation,
  observationOf,
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
  outlivedReasons,
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

/** Delegates. `call`: this call. `calls`: all calls of the turn; their order distinguishes calls with the same message. */
export async function* delegate(
  turn: TurnBase,
  calls: readonly DelegateCall[],
  call: DelegateCall,
  left: AbortSignal,
): AsyncGenerator<AgentYield, Delegated, void> {
  const rows = await turn.delegations();
  const identity = await identify(turn, calls, call, rows, left);
  const { key } = identity;
  if (rows.running.has(key))
    throw mistake(`two delegations at a time have the key ${JSON.stringify(call.options.key)}`);
  rows.running.add(key);
  rows.had.add(key);
  let watch: DelegationWatch | undefined;
  let observed: Observation = {};
  try {
    if (!rows.closed.has(key)) {
      const { card } = call.client;
      watch = turn.watchDelegation?.({ card, parts: contentOf(call.message).parts });
      const about = { name: card.name, url: card.supportedInterfaces[0]?.url };
      observed = observationOf(turn.observed?.delegation?.(about));
    }
    return yield* new Delegation(turn, rows, { ...call, watch, trace: observed.trace }, identity, left).run();
  } catch (error) {
    watch?.onEnd?.({ error });
    watch = undefined;
    observed.end?.(rows.asking ? undefined : toA2AError(error));
    observed = {};
    throw error;
  } finally {
    // Runs also if the agent's function abandons the delegation, or the turn ends with a question.
    watch?.onEnd?.({});
    observed.end?.();
    rows.running.delete(key);
  }
}

/** One delegation, in one attempt of the turn. */
class Delegation {
  readonly #turn: TurnBase;
  readonly #rows: Delegations;
  readonly #call: DelegateCall;
  readonly #identity: Identity;
  readonly #content: DelegatedContent;
  readonly #agent: string;
  readonly #calls: DelegateCalls;
  readonly #signal: AbortSignal;
  #row!: OpenDelegation;
  #artifacts!: DelegatedArtifacts;
  /** The last message of this attempt, with files that the other agent can read. */
  #message: Message | undefined;
  /** Whether it has links to files. They change each time, so the other agent sees a different message. */
  #hasLinks = false;
  /** The other agent has, or may have, a task that is not over. */
  #isOpen = false;
  /** The message may have arrived, in this attempt or in an earlier one. */
  #mayHaveIt = false;
  /** The first message was sent in this attempt, and the other agent has not started to work. */
  #isIdle = false;

  constructor(turn: TurnBase, rows: Delegations, call: DelegateCall, identity: Identity, left: AbortSignal) {
    const { client, message, options, watch } = call;
    this.#turn = turn;
    this.#rows = rows;
    this.#call = call;
    this.#identity = identity;
    this.#content = contentOf(message);
    this.#agent = nameOf(client);
    this.#signal = AbortSignal.any([turn.signal, left]);
    this.#calls = new DelegateCalls(turn, client, options, this.#signal, watch?.extensions, call.trace);
  }

  get #key(): string {
    return this.#identity.key;
  }

  get #options(): DelegateOptions {
    return this.#call.options;
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

  /** Sends the message, or continues after an earlier attempt or turn. */
  async #begin(): Promise<AsyncGenerator<Came, void, void>> {
    const stored = this.#rows.open.get(this.#key);
    if (stored === undefined) {
      this.#isIdle = this.#content.taskId === undefined;
      if (this.#calls.hops !== undefined) return this.#sendFirst();
      throw new DelegationFailed(
        "loop",
        `${this.#agent} was not asked: the request has passed through too many agents.`,
      );
    }
    this.#take(stored);
    if (stored.auth === true) this.#rows.authorizations.set(this.#key, undefined);
    const { asked, unsentAnswer, ...row } = stored;
    const answer = unsentAnswer ?? this.#rows.answer;
    if (asked === true && answer !== undefined) {
      const round = row.round + 1;
      const messageId = await messageIdOf(this.#turn, this.#rows, this.#key, round);
      return this.#send({ ...row, round, answer, messageId, unsure: true });
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
    return this.#calls.send(await this.#make(row));
  }

  async #make(row: OpenDelegation): Promise<Message> {
    const message = await messageOf(this.#rows, this.#content, row);
    const { outside } = this.#turn;
    if (outside === undefined) return (this.#message = message);
    this.#hasLinks = outside.hasLinks(message.parts);
    return (this.#message = { ...message, parts: await outside.sendable(message.parts) });
  }

  /** Whether the other agent deduplicates messages. */
  get #joins(): boolean {
    return this.#calls.joins && !this.#hasLinks;
  }

  /** Sends the message, unless the agent may have it already. */
  async #sendFirst(): Promise<AsyncGenerator<Came, void, void>> {
    const { key, doubt } = this.#identity;
    const { client, options } = this.#call;
    const init = { turn: this.#turn, rows: this.#rows, options, content: this.#content, key, client };
    const row = await firstRow(init);
    if (doubt === undefined) return this.#send(row);
    this.#mayHaveIt = true;
    const { sent } = doubt;
    if (sent !== undefined && this.#calls.joins) {
      // The same agent deduplicates the message. For another agent it is new.
      const { messageId, contextId } = sent;
      const { contextId: _, ...rest } = row;
      const same = { ...rest, messageId, ...(contextId !== undefined && { contextId }) };
      await this.#make(same);
      if (this.#joins) return this.#send(same);
    }
    if (options.onUncertain === "resend") return this.#send(row);
    throw this.#uncertain();
  }

  #uncertain(): DelegationFailed {
    return new DelegationFailed("uncertain", `It is not known whether ${this.#agent} has received its message.`);
  }

  /** Called if it is unknown whether the message arrived. */
  async #sendUnlessArrived(): Promise<AsyncGenerator<Came, void, void>> {
    const row = this.#row;
    this.#mayHaveIt = true;
    const isSame = row.answer !== undefined || row.hash === hashOf(this.#content);
    if (isSame && this.#message === undefined) await this.#make(row);
    if (isSame && this.#joins) return this.#send(row);
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
        if (!this.#calls.mayRetry(since) || !this.#isRetryable(error.cause, failures)) throw error;
        if (failures > 1 || this.#row.unsure !== true) await this.#calls.rest(failures);
        source = this.#row.unsure === true ? await this.#sendUnlessArrived() : this.#calls.follow(this.#row);
      }
    }
  }

  /** Whether to retry, because the other agent has the message, or may have it, and may be restarting. */
  #isRetryable(cause: unknown, failures: number): boolean {
    if (!mayPass(cause)) return false;
    if (this.#row.unsure !== true) return this.#row.taskId !== undefined;
    this.#mayHaveIt ||= mayHaveArrived(cause);
    return this.#mayHaveIt && (this.#joins || failures === 1);
  }

  #refused(cause: unknown): DelegationFailed {
    const untaken = this.#isIdle && !this.#mayHaveIt && this.#row.unsure === true && wasRefused(cause);
    const text = `${this.#agent} could not do its part (${reasonOf(cause)}).`;
    return new DelegationFailed("refused", text, { cause, untaken });
  }

  /** Applies an event. Returns the result once it is available. */
  async *#apply({ event, seq }: Came): AsyncGenerator<AgentYield, Delegated | undefined, void> {
    const heard = this.#call.watch?.onEvent?.(event);
    if (heard !== undefined) await this.#calls.until(heard);
    if (event.message !== undefined) return this.#replied(event.message);
    const known = this.#row.taskId !== undefined && this.#row.unsure !== true;
    const { unsure: _, seq: last, ...row } = this.#row;
    // A whole task may be newer than the last event number.
    const isPassed = event.task !== undefined || last === undefined;
    this.#row = { ...row, ...(!isPassed && { seq: last }), ...idsOf(event) };
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
    if (ends) return this.#ended({ ...briefOf(taskOf(this.#row, event.task, status)), status });
    if (status.state !== "TASK_STATE_INPUT_REQUIRED") {
      if (!known) yield this.#delegated();
      return undefined;
    }
    if (this.#options.questions === false)
      return this.#ended({ ...briefOf(taskOf(this.#row, event.task, status)), status });
    const question = status.message?.messageId;
    // An agent may repeat the question before it works on the answer.
    if (question !== undefined && this.#row.answer !== undefined && question === this.#row.question) return undefined;
    // The question ends the turn. The next turn has only the answer to this question.
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
    // A reply that is too large to keep is requested again after a restart.
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

  /** The result of a delegation that has already ended. */
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

  /** Stores the failure, for later attempts of the turn. */
  async #fail(failure: DelegationFailed): Promise<void> {
    this.#isOpen = false;
    // The other agent has no task for a rejected message, and looking for one would send the message again.
    if (failure.kind === "refused" && !failure.untaken && this.#options.cancel !== "canceled") this.#cancel();
    this.#rows.authorizations.delete(this.#key);
    await this.#rows.close(this.#key, failureRow(this.#row, failure));
  }

  /** The delegation has ended, or its turn no longer waits for it. */
  #leave(): void {
    if (!this.#isOpen) return;
    const { signal } = this.#turn;
    const kind = signal.aborted ? signal.reason?.kind : this.#rows.asking ? "asking" : "left";
    if (kind === undefined || outlivedReasons.has(kind)) return;
    if (kind !== "canceled" && this.#options.cancel === "canceled") return;
    this.#cancel();
    if (kind !== "left") return;
    const failure = new DelegationFailed("canceled", `${this.#agent} was told to stop.`);
    // If the turn is over, storing fails, and the row is not needed.
    this.#rows.close(this.#key, failureRow(this.#row, failure)).catch(() => {});
  }

  #cancel(): void {
    if (this.#options.cancel !== "never")
      void this.#calls.cancel(this.#row, this.#hasLinks ? undefined : this.#message);
  }
}
