import { TurnAborted, type TurnAbortKind, type TurnSignal } from "../../protocol/index.ts";
import type { Loss } from "../log/loss.ts";

/** What `turn.signal` says of a run that was lost. */
export const lossReasons: { readonly [Name in Loss]: readonly [TurnAbortKind, string] } = {
  canceled: ["canceled", "The task was canceled"],
  fenced: ["leaseLost", "Another process has taken the task over"],
  store: ["storeFailed", "The store failed"],
  shutdown: ["shutdown", "The server stops"],
};

interface Reason {
  readonly kind: TurnAbortKind;
  readonly text: string;
  readonly cause: unknown;
}

/** The signal of a run, which most agents never ask for: the controller is made for those that do. */
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

  /** Fires the signal; only the first reason counts. */
  abort(kind: TurnAbortKind, text: string, cause?: unknown): void {
    this.#reason ??= { kind, text, cause };
    this.#controller?.abort(errorOf(this.#reason));
  }

  /** The run is over: a signal that is asked for from now on has fired. One that an agent has already does not fire for it. */
  end(): void {
    this.#reason ??= over;
  }
}

const over: Reason = { kind: "over", text: "The turn is over", cause: undefined };

function errorOf({ kind, text, cause }: Reason): TurnAborted {
  return new TurnAborted(kind, text, { cause });
}
