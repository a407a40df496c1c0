import type { A2AError, Task } from "../../model/index.ts";
import type { AgentEvent, TurnAbortKind } from "../../protocol/index.ts";
import type { ContextView } from "../context-view.ts";
import type { Loss } from "../log/loss.ts";
import type { TurnInput } from "./turn.ts";

/** The turn that follows another one, and the task as it stands at its beginning. */
export interface NextTurn {
  readonly input: TurnInput;
  readonly task: Task | undefined;
}

/** What a run works on: a message that has no task yet (`FirstMessage`), or a task (`TaskRun`). */
export interface Phase {
  /** Fence under which it writes; `undefined` while there is no task. */
  readonly fence: number | undefined;
  /** Bytes of the budget that it holds. */
  readonly bytes: number;
  /** It waits for somebody outside, so that its silence is no sign of trouble. */
  readonly isInterrupted: boolean;
  /** Nothing that the agent says counts any more. */
  readonly stopped: boolean;
  /** The turn has asked its question: nothing more of it is stored. */
  readonly silenced: boolean;
  /** The agent has said something in this turn. */
  readonly hasSpoken: boolean;
  /** Why the store took no more of it. */
  readonly storeError: A2AError | undefined;

  /** Takes what the agent yielded together. A promise only where there is something to wait for. */
  accept(events: readonly AgentEvent[], context: ContextView): Promise<unknown> | undefined;
  /** While too much waits for the store. */
  room(): Promise<void> | undefined;
  /** Resolves once everything accepted so far is stored; rejects when it cannot be. */
  flush(): Promise<void>;
  /** Makes the task although the agent has said nothing yet (§3.2.2 `returnImmediately`). */
  makeTask(): void;
  /** Ends the turn. Resolves to the next one where a message waits for it. */
  endTurn(context: ContextView): Promise<NextTurn | undefined>;
  /** Ends the task as failed. `sentence` is for its user, `cause` for the operator. */
  fail(sentence: string, cause: unknown, kind: TurnAbortKind): void;
  /** Another took the task away, or this process gives it up. */
  lose(loss: Loss): void;
  /** The server stops: a resumable task is left for another process, any other fails and says why. */
  stop(): Promise<void>;
  /** Resolves once something new of the run is stored, so that the process has survived it, or the run is over. */
  proven(): Promise<void>;
  /** The process has survived the run for a while: if it crashes later, this run is no more to blame than others. */
  acquit(): void;
}

/** What a phase needs of its run. */
export interface PhaseHost {
  /** Tells the agent that nothing more of its turn counts. */
  abort(kind: TurnAbortKind, text: string, cause?: unknown): void;
  /** The message has made a task. */
  becomes(task: Phase): void;
  /** Nothing more will be written. */
  end(): void;
}
