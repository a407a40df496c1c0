import { createServer, type Server as NetServer, type Socket } from "node:net";
import { stopListening } from "../listen.ts";

/** A process that takes connections. */
export interface Taker {
  /** Sends the process a connection to a port. The process reports when it has received it (`taken`). */
  send(port: number, socket: Socket): void;
}

/** A connection that no process has taken yet. */
interface Waiting {
  readonly port: number;
  readonly socket: Socket;
}

/** Maximum connections that wait while no process takes any. */
const maxWaiting = 1_000;
/** Maximum milliseconds that a connection waits for a process, and that a process may take to report a connection as received. */
const longestWait = 30_000;

/** The state of a process. */
interface Known {
  /** The connection that it has not taken yet. */
  open: Waiting | undefined;
  takes: boolean;
  /** Runs while `open` is set. */
  late?: NodeJS.Timeout;
}

interface SpreadInit<Member> {
  /** Called if a process has not taken a connection for 30 s: it is stopped, or its event loop is blocked. */
  readonly onStuck: (taker: Member) => void;
}

/**
 * Distributes connections to processes in turn. A process gets the next connection only after it has reported that it received the last one,
 * so no connection waits for a busy process, and none is lost when a process ends.
 */
export class Spread<Member extends Taker> {
  /** The first process gets the next connection. */
  readonly #takers = new Map<Member, Known>();
  #waiting: Waiting[] = [];
  readonly #onStuck: (taker: Member) => void;

  constructor({ onStuck }: SpreadInit<Member>) {
    this.#onStuck = onStuck;
  }

  /** Call it when a process begins to take connections. */
  add(taker: Member): void {
    this.#takers.set(taker, { open: this.#takers.get(taker)?.open, takes: true });
    this.#next();
  }

  /** Stops giving connections to a process. The process still takes a connection that was sent to it. */
  remove(taker: Member): void {
    const known = this.#takers.get(taker);
    if (known !== undefined) known.takes = false;
  }

  /** Call it when a process has ended. If it had not taken a connection, another process gets that connection. */
  ended(taker: Member): void {
    const { open, late } = this.#takers.get(taker) ?? {};
    clearTimeout(late);
    this.#takers.delete(taker);
    if (open !== undefined) this.give(open.port, open.socket);
  }

  /** Call it when a process reports that it has received its connection. */
  taken(taker: Member): void {
    const known = this.#takers.get(taker);
    if (known === undefined) return;
    // Closes the copy of this process. The connection stays open in the other process.
    clearTimeout(known.late);
    known.open?.socket.destroy();
    known.open = undefined;
    // Moves the process to the end.
    this.#takers.delete(taker);
    this.#takers.set(taker, known);
    this.#next();
  }

  /** Call it for a new connection. */
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

  /** Whether connections wait for a process, or were sent and not taken yet. */
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

/** A server that accepts connections without reading from them. */
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
