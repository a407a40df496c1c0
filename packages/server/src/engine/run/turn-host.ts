import type { Logger } from "@parley/a2a/internal/base/index";
import {
  auditedSubject,
  TurnAborted,
  turnObserver,
  type AgentEvent,
  type AuditDetails,
  type AuthorizationInit,
  type Begun,
  type Delegations,
  type OpenAuthorization,
  type TurnAbortKind,
  type TurnMemory,
  type TurnObserver,
  type TurnRows,
  type TurnSignal,
} from "@parley/a2a/internal/protocol/index";
import type { TaskKey, TaskStateEffect } from "../../store/index.ts";
import { StateValue } from "../conversations/conversations.ts";
import { isOfStore } from "../shared/errors.ts";
import { agentMistake } from "../shared/mistakes.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { RunSettings } from "../shared/settings.ts";
import type { RunMemory } from "./memory.ts";
import type { KeepingTurn, Phase } from "./phase.ts";
import { RunFiles } from "./run-files.ts";
import { turnRows } from "./task-rows.ts";
import { attemptOf, seenBy, type TurnInput } from "./turn-input.ts";

export interface HostedRun {
  readonly key: TaskKey;
  readonly contextId: string;
  readonly hosted: HostedAgent;
  readonly phase: Phase;
  readonly logger: Logger;
  readonly input: TurnInput;
  progressed(): void;
  holdResults(bytes: number): void;
}

/** Gives the turns of a run access to the task's state, its files and its rows. */
export class RunHost {
  readonly abort: RunAbort = new RunAbort();
  readonly #settings: RunSettings;
  readonly #run: HostedRun;
  readonly #storedState: string | undefined;
  /** Created on first use. */
  #state: StateValue | undefined;
  #cancels: (() => void)[] | undefined;
  #delegations: Promise<Delegations> | undefined;
  #memory: Promise<TurnMemory> | undefined;
  #opened: RunMemory | undefined;
  #outside: RunFiles | undefined;

  /** `storedState`: the state of the task as JSON text. */
  constructor(settings: RunSettings, run: HostedRun, storedState: string | undefined) {
    this.#settings = settings;
    this.#run = run;
    this.#storedState = storedState;
  }

  begin(): void {
    this.#cancels = this.#delegations = this.#memory = this.#opened = undefined;
  }

  get signal(): TurnSignal {
    return this.abort.signal;
  }

  get state(): StateValue {
    return (this.#state ??= new StateValue("turn.setState()", this.#storedState, this.#settings.limits.stateBytes));
  }

  takeState(): TaskStateEffect | undefined {
    const value = this.#state?.takeChange();
    return value === undefined ? undefined : { effect: "taskState", value };
  }

  flush(): Promise<void> {
    return this.#run.phase.flush();
  }

  async authorization<Init extends AuthorizationInit>(
    init: Init,
    makeId: () => string,
  ): Promise<OpenAuthorization<Init["form"]>> {
    const { authorizations } = this.#settings;
    if (authorizations === undefined) throw agentMistake("turn.authorize(): this host cannot serve it");
    const run = this.#run;
    return authorizations.open(init, {
      task: run.key,
      number: seenBy(run.input).turn,
      contextId: run.contextId,
      agentName: run.hosted.card.name,
      principal: run.input.principal,
      signal: this.signal,
      makeId,
      keep(effects) {
        run.phase.makeTask();
        return run.phase.keep(effects);
      },
      rest: (resting) => run.phase.rest(resting, true),
    });
  }

  rows(feature: string): TurnRows {
    const { key: task, input } = this.#run;
    const { store, clock } = this.#settings;
    return turnRows(feature, { store, clock, task, turn: seenBy(input).turn, phase: () => this.#run.phase });
  }

  get observed(): TurnObserver<Begun> | undefined {
    const { observer } = this.#settings;
    const { key, contextId } = this.#run;
    return observer && turnObserver(observer, { agent: key.agent, taskId: key.taskId, contextId });
  }

  audit(action: string, details: AuditDetails = {}): void {
    checkAction(action, details);
    const { audit, clock } = this.#settings;
    const { key, contextId, input } = this.#run;
    const subject = auditedSubject({
      principal: input.principal,
      taskId: key.taskId,
      contextId,
      trace: input.call.trace,
    });
    const about = { agent: key.agent, action, ...(Object.keys(details).length > 0 && { details: { ...details } }) };
    audit?.({ event: "action", outcome: "success", time: clock.now(), ...about, ...subject });
  }

  get resumable(): boolean {
    return this.#run.hosted.agent.resumable === true;
  }

  delegations(): Promise<Delegations> {
    return (this.#delegations ??= this.#openDelegations().catch((error: unknown) => {
      this.#delegations = undefined;
      throw this.#failed(error);
    }));
  }

  memory(): Promise<TurnMemory> {
    return (this.#memory ??= this.#openMemory().catch((error: unknown) => {
      this.#memory = undefined;
      throw this.#failed(error);
    }));
  }

  get outside(): RunFiles | undefined {
    const { blobs } = this.#settings;
    if (blobs === undefined) return undefined;
    return (this.#outside ??= new RunFiles(blobs, this.#run.key, {
      resumes: () => attemptOf(this.#run.input) > 1,
      onProgress: () => this.#run.progressed(),
    }));
  }

  get cancels(): readonly (() => void)[] {
    return this.#cancels ?? [];
  }

  get inStep(): boolean {
    return (this.#opened?.running.size ?? 0) > 0;
  }

  async stepsOver(): Promise<void> {
    await this.#opened?.running.empty();
  }

  pass(events: readonly AgentEvent[], accept: () => boolean | Promise<boolean>): boolean | Promise<boolean> {
    if (this.#opened === undefined) return accept();
    const [event] = events;
    if (event?.kind === "wait") this.#opened.keepOnly(event.waits.map(({ key }) => key));
    const accepted = accept();
    if (typeof accepted !== "boolean") return accepted.then((continues) => (this.#accepted(events), continues));
    this.#accepted(events);
    return accepted;
  }

  /** Called when the events are stored, or are about to be stored. */
  #accepted(events: readonly AgentEvent[]): void {
    const { counts } = this.#run.input;
    if (counts !== undefined && events.some((event) => event?.kind === "checkpoint")) this.#opened?.forgetWaits(counts);
  }

  /** The code for delegations, steps and waits is loaded on first use. */
  async #openDelegations(): Promise<Delegations> {
    return (await import("./delegations.ts")).openDelegations(this.#keeping());
  }

  async #openMemory(): Promise<TurnMemory> {
    const { openMemory } = await import("./memory.ts");
    const turn = this.#keeping();
    const memory = await openMemory({ ...turn, onFailed: (error) => this.#failed(error) });
    if (turn.input === this.#run.input) this.#opened = memory;
    return memory;
  }

  #keeping(): KeepingTurn {
    const run = this.#run;
    return {
      settings: this.#settings,
      task: run.key,
      number: seenBy(run.input).turn,
      phase: () => run.phase,
      logger: run.logger,
      input: run.input,
      onCancel: (cancel) => (this.#cancels ??= []).push(cancel),
      onProgress: () => run.progressed(),
      onBytes: (bytes) => run.holdResults(bytes),
    };
  }

  /** Ends the run immediately: the agent could catch the error, but must not continue without its stored results. */
  #failed(error: unknown): unknown {
    if (isOfStore(error)) this.#run.phase.lose("store", error);
    return error;
  }
}

interface Reason {
  readonly kind: TurnAbortKind;
  readonly text: string;
  readonly cause: unknown;
}

/** The signal of a run. Its controller is created on first read, because most agents never read the signal. */
class RunAbort {
  #reason: Reason | undefined;
  #controller: AbortController | undefined;

  get signal(): TurnSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(errorOf(this.#reason));
    }
    return this.#controller.signal;
  }

  /** Fires the signal. Only the first reason counts. */
  abort(kind: TurnAbortKind, text: string, cause?: unknown): void {
    this.#reason ??= { kind, text, cause };
    this.#controller?.abort(errorOf(this.#reason));
  }

  /** Called when the run has ended. A signal that is read from now on is aborted. A signal that was read before does not fire. */
  end(): void {
    this.#reason ??= over;
  }
}

const over: Reason = { kind: "over", text: "The turn is over", cause: undefined };

function errorOf({ kind, text, cause }: Reason): TurnAborted {
  return new TurnAborted(kind, text, { cause });
}

const [maxDetails, maxDetail, maxAction] = [32, 1024, 256];

/** Checks an audited action: JavaScript callers can pass anything, and records must stay small. */
function checkAction(action: unknown, details: unknown): void {
  if (typeof action !== "string" || action === "" || action.length > maxAction)
    throw agentMistake(`turn.audit(): the action must be a text of 1 to ${maxAction} characters`);
  if (typeof details !== "object" || details === null || Array.isArray(details))
    throw agentMistake("turn.audit(): the details must be an object, such as { order: id }");
  const all = Object.entries(details);
  if (all.length > maxDetails) throw agentMistake(`turn.audit(): at most ${maxDetails} details are recorded`);
  for (const [name, value] of all) {
    const fits = name.length <= maxAction && (typeof value !== "string" || value.length <= maxDetail);
    if (!fits || !["string", "number", "boolean"].includes(typeof value))
      throw agentMistake(
        `turn.audit(): the detail ${JSON.stringify(name.slice(0, 100))} must be a number, a boolean, or a text of at most ${maxDetail} characters`,
      );
  }
}
