import { A2AError } from "@parley/a2a/internal/model/index";
import type { Server } from "../serve-options.ts";
import { tell, type Child } from "./child.ts";
import { receivedError, type Answer, type Erasure, type Order, type Report, type SignalEvent } from "./messages.ts";

interface Call {
  readonly child: Child;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls of the first process to those that serve: it has neither a store nor runs itself. */
export class Calls {
  /** The processes that serve. */
  readonly #serving: () => readonly Child[];
  readonly #open = new Map<number, Call>();
  #last = 0;

  constructor(serving: () => readonly Child[]) {
    this.#serving = serving;
  }

  async signal(event: Parameters<Server["signal"]>): Promise<void> {
    await this.#ask(this.#serving()[0], (call) => ({ parley: "signal", call, event: event as SignalEvent }));
  }

  /** Each of them has runs and a memory of its own. The file is copied once. */
  async deleteOwner(...[owner, { scrub = false } = {}]: Parameters<Server["deleteOwner"]>): Promise<Erasure> {
    const children = this.#serving();
    let [tasks, canceled] = [0, 0];
    for (const child of children.length === 0 ? [undefined] : children) {
      const last = child === children.at(-1);
      const { erased } = await this.#ask(child, (call) => ({ parley: "delete", call, owner, scrub: scrub && last }));
      tasks += erased?.tasks ?? 0;
      canceled += erased?.canceled ?? 0;
    }
    return { tasks, canceled };
  }

  /** One of them reads, a piece each time that it is asked for the next one. */
  async *exportOwner(owner: Parameters<Server["exportOwner"]>[0]): ReturnType<Server["exportOwner"]> {
    const [child] = this.#serving();
    const id = (this.#last += 1);
    let isOver = false;
    try {
      while (!isOver) {
        const { piece } = await this.#ask(child, (call) => ({ parley: "export", call, id, owner }));
        isOver = piece === undefined;
        if (piece !== undefined) yield piece;
      }
    } catch (error) {
      isOver = true;
      throw error;
    } finally {
      if (!isOver && child !== undefined) tell(child, { parley: "exported", id });
    }
  }

  answered({ call, error, ...answer }: Extract<Report, { readonly parley: "answered" }>): void {
    const open = this.#open.get(call);
    this.#open.delete(call);
    if (error === undefined) open?.resolve(answer);
    else open?.reject(receivedError(error));
  }

  /** A process has ended: it answers nothing more. */
  ended(child: Child): void {
    for (const [call, { child: asked, reject }] of this.#open) {
      if (asked !== child) continue;
      this.#open.delete(call);
      reject(new A2AError("Unavailable", "The process has ended", { retryAfter: 1 }));
    }
  }

  #ask(child: Child | undefined, order: (call: number) => Order): Promise<Answer> {
    if (child?.worker.isConnected() !== true) {
      return Promise.reject(new A2AError("Unavailable", "No process serves at the moment", { retryAfter: 1 }));
    }
    return new Promise((resolve, reject) => {
      const call = (this.#last += 1);
      this.#open.set(call, { child, resolve, reject });
      tell(child, order(call));
    });
  }
}
