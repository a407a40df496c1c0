import type { Logger } from "@parley/a2a/internal/base/index";
import {
  TurnAborted,
  type AgentEvent,
  type AuthorizationInit,
  type Delegations,
  type OpenAuthorization,
  type TurnAbortKind,
  type TurnMemory,
  type TurnRows,
  type TurnSignal,
} from "@parley/a2a/internal/protocol/index";
import type { TaskKey, TaskStateEffect } from "../../store/index.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { RunSettings } from "../shared/settings.ts";
import { TurnKeeps } from "./keeps.ts";
import type { Phase } from "./phase.ts";
import { RunFiles } from "./run-files.ts";
import { TaskValue } from "./task-value.ts";
import type { TurnHost } from "./turn.ts";
import { attemptOf, type TurnInput } from "./turn-input.ts";

/** The run whose turns use it. */
export interface HostedRun {
  readonly key: TaskKey;
  readonly contextId: string;
  readonly hosted: HostedAgent;
  readonly phase: Phase;
  /** Adds the task to each line. */
  readonly logger: Logger;
  /** The turn that is under way. */
  readonly input: TurnInput;
  /** The agent is alive. */
  progressed(): void;
  /** How many bytes the turn remembers. */
  holdResults(bytes: number): void;
}

/** What the turns of a run may use beside their events: the state of the task, its files, and what they keep with it. */
export class RunHost implements TurnHost {
  readonly abort: RunAbort = new RunAbort();
  readonly #settings: RunSettings;
  readonly #run: HostedRun;
  /** As it was when the run began. */
  readonly #storedState: string | undefined;
  /** Made when the agent first asks for it. */
  #state: TaskValue | undefined;
  #cancels: (() => void)[] | undefined;
  /** Made when the turn first keeps something. */
  #keeps: TurnKeeps | undefined;
  #outside: RunFiles | undefined;

  /** `storedState`: the state of the task as JSON text. */
  constructor(settings: RunSettings, run: HostedRun, storedState: string | undefined) {
    this.#settings = settings;
    this.#run = run;
    this.#storedState = storedState;
  }

  /** The next turn begins. */
  begin(): void {
    this.#cancels = undefined;
    this.#keeps = undefined;
  }

  /** Fires when the run is aborted. */
  get signal(): TurnSignal {
    return this.abort.signal;
  }

  get state(): TaskValue {
    return (this.#state ??= new TaskValue(this.#storedState, this.#settings.limits.stateBytes));
  }

  /** What stores the state of the task, where the agent has set it. */
  takeState(): TaskStateEffect | undefined {
    return this.#state?.takeChange();
  }

  flush(): Promise<void> {
    return this.#run.phase.flush();
  }

  async authorization<Init extends AuthorizationInit>(
    init: Init,
    makeId: () => string,
  ): Promise<OpenAuthorization<Init["form"]>> {
    // Few agents ask for authorizations, so the others do not load how.
    const { openAuthorization } = await import("./authorization.ts");
    return openAuthorization(this.#settings.authorizations, init, {
      ...this.#ofTurn(),
      contextId: this.#run.contextId,
      agentName: this.#run.hosted.card.name,
      principal: this.#run.input.principal,
      signal: this.signal,
      makeId,
    });
  }

  rows(feature: string): TurnRows {
    return this.#keepsOfTurn().rows(feature);
  }

  get resumable(): boolean {
    return this.#run.hosted.agent.resumable === true;
  }

  delegations(): Promise<Delegations> {
    return this.#keepsOfTurn().delegations();
  }

  memory(): Promise<TurnMemory> {
    return this.#keepsOfTurn().memory();
  }

  get outside(): RunFiles | undefined {
    const { blobs } = this.#settings;
    if (blobs === undefined) return undefined;
    return (this.#outside ??= new RunFiles(blobs, this.#run.key, {
      resumes: () => attemptOf(this.#run.input) > 1,
      onProgress: () => this.#run.progressed(),
    }));
  }

  /** What cancels the tasks of other agents. */
  get cancels(): readonly (() => void)[] {
    return this.#cancels ?? [];
  }

  /** Whether the function of a step is under way. */
  get inStep(): boolean {
    return this.#keeps?.inStep === true;
  }

  /** Resolves once no step is under way. */
  async stepsOver(): Promise<void> {
    await this.#keeps?.stepsOver();
  }

  /** Passes on what the function has yielded. */
  pass(events: readonly AgentEvent[], take: () => boolean | Promise<boolean>): boolean | Promise<boolean> {
    return this.#keeps === undefined ? take() : this.#keeps.pass(events, take);
  }

  /** Of the turn that the function sees. */
  #ofTurn(): { readonly task: TaskKey; readonly number: number; readonly phase: () => Phase } {
    const { key, input } = this.#run;
    return { task: key, number: (input.resumes ?? input).turn, phase: () => this.#run.phase };
  }

  #keepsOfTurn(): TurnKeeps {
    return (this.#keeps ??= new TurnKeeps({
      ...this.#ofTurn(),
      settings: this.#settings,
      logger: this.#run.logger,
      input: this.#run.input,
      onCancel: (cancel) => (this.#cancels ??= []).push(cancel),
      onProgress: () => this.#run.progressed(),
      onBytes: (bytes) => this.#run.holdResults(bytes),
    }));
  }
}

interface Reason {
  readonly kind: TurnAbortKind;
  readonly text: string;
  readonly cause: unknown;
}

/** The signal of a run. Most agents never read it, so the controller is made when one does. */
export class RunAbort {
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

  /** The run is over: a signal that is read from now on has fired. A signal that was read before does not fire. */
  end(): void {
    this.#reason ??= over;
  }
}

const over: Reason = { kind: "over", text: "The turn is over", cause: undefined };

function errorOf({ kind, text, cause }: Reason): TurnAborted {
  return new TurnAborted(kind, text, { cause });
}
