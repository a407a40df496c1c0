import type { Worker } from "node:cluster";
import type { Socket } from "node:net";
import type { Order } from "./messages.ts";
import { anyText } from "./wakeup.ts";

/** A process that serves, or is about to. */
export interface Child {
  readonly worker: Worker;
  readonly number: number;
  readonly since: number;
  isReady: boolean;
  /** It was killed because it does not react, which one of its tasks may have caused. */
  isStuck: boolean;
  /** It takes no more connections: it has nothing to answer them with. */
  hasLeft: boolean;
  /** Characters of wake-ups that it has not read, such as while it is stopped. */
  unread: number;
  /** Wake-ups were left out because of that. */
  missed: boolean;
  /** Sends it a connection to a port. */
  send(port: number, socket: Socket): void;
}

/** The most characters of wake-ups that wait for a process. */
const maxUnread = 1 << 20;

/** Passes a wake-up on. A process that does not read gets one in place of many, once it reads again. */
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

/** What cannot be sent is for a process that has ended. */
export function tell({ worker }: Child, order: Order): void {
  if (worker.isConnected()) worker.process.send(order, () => {});
}
