import type { Logger } from "@parley/a2a/internal/base/index";
import type { AgentEvent, Delegations, TurnMemory, TurnRows } from "@parley/a2a/internal/protocol/index";
import type { TaskKey } from "../../store/index.ts";
import { isOfStore } from "../shared/errors.ts";
import type { RunSettings } from "../shared/settings.ts";
import type { RunMemory } from "./memory.ts";
import type { Phase } from "./phase.ts";
import type { TurnInput } from "./turn-input.ts";

/** The run whose turn keeps something. */
interface KeepingRun {
  readonly settings: RunSettings;
  /** Adds the task to each line. */
  readonly logger: Logger;
  readonly task: TaskKey;
  /** The turn that the function sees, from 1. */
  readonly number: number;
  readonly input: TurnInput;
  readonly phase: () => Phase;
  readonly onCancel: (cancel: () => void) => void;
  /** The turn is alive. */
  readonly onProgress: () => void;
  /** How many bytes it holds in memory. */
  readonly onBytes: (bytes: number) => void;
}

/** What a turn keeps with its task: rows of extensions, delegations, steps and waits. How is loaded by those that do. */
export class TurnKeeps {
  readonly #run: KeepingRun;
  #delegations: Promise<Delegations> | undefined;
  #memory: Promise<TurnMemory> | undefined;
  #opened: RunMemory | undefined;

  constructor(run: KeepingRun) {
    this.#run = run;
  }

  /** For an extension of the turn, by its URI. */
  rows(feature: string): TurnRows {
    const { settings, task, number: turn, phase } = this.#run;
    const { store, clock } = settings;
    const host = { store, clock, task, turn, phase };
    const rows = async (): Promise<TurnRows> => (await import("./turn-rows.ts")).turnRows(feature, host);
    return {
      read: async () => (await rows()).read(),
      store: async (changes) => (await rows()).store(changes),
      claim: async (...name) => (await rows()).claim(...name),
    };
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

  /** Whether the function of a step is under way. */
  get inStep(): boolean {
    return (this.#opened?.running.size ?? 0) > 0;
  }

  /** Resolves once no step is under way. */
  async stepsOver(): Promise<void> {
    await this.#opened?.running.empty();
  }

  /** Passes on what the function has yielded. */
  pass(events: readonly AgentEvent[], accept: () => boolean | Promise<boolean>): boolean | Promise<boolean> {
    const [event] = events;
    if (event?.kind === "wait") this.#opened?.keepOnly(event.waits.map(({ key }) => key));
    const accepted = accept();
    if (typeof accepted !== "boolean") return accepted.then((goesOn) => (this.#accepted(events), goesOn));
    this.#accepted(events);
    return accepted;
  }

  /** They are stored, or are about to be. */
  #accepted(events: readonly AgentEvent[]): void {
    const { counts } = this.#run.input;
    if (counts !== undefined && events.some((event) => event?.kind === "checkpoint")) this.#opened?.forgetWaits(counts);
  }

  async #openDelegations(): Promise<Delegations> {
    const { settings, ...run } = this.#run;
    const { openDelegations } = await import("./delegations.ts");
    return openDelegations({ ...settings, ...run });
  }

  async #openMemory(): Promise<TurnMemory> {
    const { settings, number: turn, ...run } = this.#run;
    const { openMemory } = await import("./memory.ts");
    const onFailed = (error: unknown): unknown => this.#failed(error);
    this.#opened = await openMemory({ ...settings, ...run, turn, onFailed });
    return this.#opened;
  }

  /** At once, and not with the end of the agent, which may catch the error: it must not go on as if nothing were remembered. */
  #failed(error: unknown): unknown {
    if (isOfStore(error)) this.#run.phase().lose("store", error);
    return error;
  }
}
