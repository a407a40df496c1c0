import { createServer, type Server as NetServer, type Socket } from "node:net";
import { stopListening } from "../listen.ts";

/** A process that takes connections. */
export interface Taker {
  /** Sends it a connection to a port. It says when it has it (`taken`). */
  send(port: number, socket: Socket): void;
}

/** A connection that no process has yet. */
interface Waiting {
  readonly port: number;
  readonly socket: Socket;
}

/** How many connections wait at most, while no process takes any. */
const maxWaiting = 1_000;
/** How long one waits, in milliseconds, and how long a process may take to say that it has it. */
const longestWait = 30_000;

/** A process, as it is known here. */
interface Known {
  /** The connection that it has not taken yet. */
  open: Waiting | undefined;
  takes: boolean;
  /** Runs while there is one. */
  late?: NodeJS.Timeout;
}

interface SpreadInit<Member> {
  /** A process has not said for 30 s that it has a connection: it is stopped, or its event loop is blocked. */
  readonly onStuck: (taker: Member) => void;
}

/**
 * Gives connections to processes, one after the other. A process gets the next one when it has said that it has the last, so that none
 * waits for a process that is busy, and none is lost with a process that ends.
 */
export class Spread<Member extends Taker> {
  /** The next one to get a connection is the first. */
  readonly #takers = new Map<Member, Known>();
  #waiting: Waiting[] = [];
  readonly #onStuck: (taker: Member) => void;

  constructor({ onStuck }: SpreadInit<Member>) {
    this.#onStuck = onStuck;
  }

  /** The process takes connections from now on. */
  add(taker: Member): void {
    this.#takers.set(taker, { open: this.#takers.get(taker)?.open, takes: true });
    this.#next();
  }

  /** The process gets no more connections. It takes one that is on its way. */
  remove(taker: Member): void {
    const known = this.#takers.get(taker);
    if (known !== undefined) known.takes = false;
  }

  /** The process has ended. Another one gets a connection that it has not taken. */
  ended(taker: Member): void {
    const { open, late } = this.#takers.get(taker) ?? {};
    clearTimeout(late);
    this.#takers.delete(taker);
    if (open !== undefined) this.give(open.port, open.socket);
  }

  /** The process has the connection. */
  taken(taker: Member): void {
    const known = this.#takers.get(taker);
    if (known === undefined) return;
    // The copy of this process. The connection stays open in the other one.
    clearTimeout(known.late);
    known.open?.socket.destroy();
    known.open = undefined;
    // To the end of the order.
    this.#takers.delete(taker);
    this.#takers.set(taker, known);
    this.#next();
  }

  /** A connection has come. */
  give(port: number, socket: Socket): void {
    if (this.#waiting.length >= maxWaiting) return void socket.destroy();
    const waiting = { port, socket };
    socket.on("error", () => {});
    socket.setTimeout(longestWait, () => {
      this.#waiting = this.#waiting.filter((each) => each !== waiting);
      socket.destroy();
    });
    this.#waiting.push(waiting);
    this.#next();
  }

  /** Whether no process takes connections. */
  get isEmpty(): boolean {
    return [...this.#takers.values()].every(({ takes }) => !takes);
  }

  /** Whether connections wait for a process, or are on the way to one. */
  get isBusy(): boolean {
    return this.#waiting.length > 0 || [...this.#takers.values()].some(({ open }) => open !== undefined);
  }

  /** Closes the connections that no process has. */
  end(): void {
    for (const { late } of this.#takers.values()) clearTimeout(late);
    for (const { socket } of this.#waiting.splice(0)) socket.destroy();
  }

  #next(): void {
    for (const [taker, known] of this.#takers) {
      if (!known.takes || known.open !== undefined) continue;
      const next = this.#waiting.shift();
      if (next === undefined) return;
      next.socket.setTimeout(0);
      known.open = next;
      known.late = setTimeout(() => this.#onStuck(taker), longestWait);
      taker.send(next.port, next.socket);
    }
  }
}

/** Accepts connections, and reads nothing of them. */
export function frontOf(at: number, spread: Pick<Spread<never>, "give">): Front {
  let acceptedCount = 0;
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => {
    acceptedCount += 1;
    spread.give(at, socket);
  });
  return { server, leave: () => stopListening(server, () => acceptedCount) };
}

/** A listening server that passes its connections on. */
export interface Front {
  readonly server: NetServer;
  /** Accepts the connections that wait, then stops listening. */
  leave(): Promise<void>;
}
