import type { Worker } from "node:cluster";
import type { Socket } from "node:net";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { Server } from "../serve-options.ts";
import { receivedError, type Answer, type Erasure, type Order, type Report, type SignalEvent } from "./messages.ts";
import { anyText } from "./wakeup.ts";

interface Call {
  readonly child: Child;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls of the parent to the serving processes, because the parent has neither a store nor runs. */
export class Calls {
  /** The serving processes. */
  readonly #serving: () => readonly Child[];
  readonly #open = new Map<number, Call>();
  #last = 0;

  constructor(serving: () => readonly Child[]) {
    this.#serving = serving;
  }

  async signal(event: SignalEvent): Promise<void> {
    await this.#ask(this.#serving()[0], (call) => ({ parley: "signal", call, event }));
  }

  /** Calls every process, because each has its own runs and memory. Only the last one scrubs the file. */
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

  /** One process reads the data. Each call returns one piece. */
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

  /** Rejects the calls to a process that has ended. */
  ended(child: Child): void {
    for (const [call, { child: asked, reject }] of this.#open) {
      if (asked !== child) continue;
      this.#open.delete(call);
      reject(new A2AError("Unavailable", "The process has ended", { retryAfter: 1 }));
    }
  }

  #ask(child: Child | undefined, order: (call: number) => Order): Promise<Answer> {
    if (child?.worker.isConnected() !== true) {
      return Promise.reject(new A2AError("Unavailable", "No process is serving now", { retryAfter: 1 }));
    }
    return new Promise((resolve, reject) => {
      const call = (this.#last += 1);
      this.#open.set(call, { child, resolve, reject });
      tell(child, order(call));
    });
  }
}

/** A serving process, or one that is starting. */
export interface Child {
  readonly worker: Worker;
  readonly number: number;
  readonly since: number;
  isReady: boolean;
  /** It was killed because it hung, which one of its tasks may have caused. */
  isStuck: boolean;
  /** It takes no more connections, because its server is closing. */
  hasLeft: boolean;
  /** Characters of wake-ups that it has not read, such as while it is stopped. */
  unread: number;
  /** Whether wake-ups were dropped because of that. */
  missed: boolean;
  send(port: number, socket: Socket): void;
}

/** Maximum characters of wake-ups queued for a process. */
const maxUnread = 1 << 20;

/** Forwards a wake-up. A process that does not read gets a single wake-up once it reads again. */
export function wake(child: Child, text: string): void {
  const { worker } = child;
  if (!worker.isConnected()) return;
  child.missed ||= child.unread + text.length > maxUnread;
  if (child.missed && child.unread > 0) return;
  const sent = child.missed ? anyText : text;
  child.missed = false;
  child.unread += sent.length;
  worker.process.send({ parley: "wakeup", text: sent } satisfies Order, () => {
    child.unread -= sent.length;
    if (child.missed && child.unread === 0) wake(child, anyText);
  });
}

/** Sends an order. Ignores failures, because the process has then ended. */
export function tell({ worker }: Child, order: Order): void {
  if (worker.isConnected()) worker.process.send(order, () => {});
}
