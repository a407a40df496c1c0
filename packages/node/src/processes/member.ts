import cluster from "node:cluster";
import { Socket } from "node:net";
import type { Logger, LogFields } from "@parley/a2a/internal/base/index";
import type { Handler } from "@parley/server/internal/handler";
import type { Store } from "@parley/server/internal/store/index";
import type { Port } from "../http/port.ts";
import type { Siblings } from "../process.ts";
import type { Server } from "../serve-options.ts";
import { isOurs, placeVariable, sentError, type Order, type Place, type Report } from "./messages.ts";
import { channelWakeup, wakingStore } from "./wakeup.ts";

type Call = Extract<Order, { readonly call: number }>;

/** The place of this process among the serving processes; `undefined`: `serve()` has not started it. */
export function placeOfThisProcess(): Place | undefined {
  const text = process.env[placeVariable];
  if (text === undefined || !cluster.isWorker) return undefined;
  const place = JSON.parse(text) as Place;
  return place.parent === process.ppid ? place : undefined;
}

/** This process as one of several serving processes. */
export class Member implements Siblings {
  readonly #place: Place;
  readonly #exports = new Exports();
  readonly #ended: Set<number>;
  readonly #killed: Set<number>;
  readonly #wakeups: ((text: string) => void)[] = [];
  #ports: readonly Port[] = [];
  #server: Server | undefined;
  #handler: Pick<Handler, "wake" | "drain"> | undefined;
  #onLeft: (() => void) | undefined;

  constructor(place: Place) {
    this.#place = place;
    this.#ended = new Set(place.ended);
    this.#killed = new Set(place.killed);
    process.on("message", this.#onMessage);
  }

  /** The logger, with the number of the process. */
  logger({ debug, info, warn, error }: Logger): Logger {
    const named =
      (write: Logger["info"]): Logger["info"] =>
      (message: string, fields?: LogFields) =>
        write(message, { process: this.#place.number, ...fields });
    return { debug: named(debug), info: named(info), warn: named(warn), error: named(error) };
  }

  /** A temporary key that the processes share. */
  get secret(): string {
    return this.#place.secret;
  }

  get group(): string {
    return this.#place.group;
  }

  readonly hasEnded = (pid: number): boolean => this.#ended.has(pid);

  readonly wasKilled = (pid: number): boolean => this.#killed.has(pid);

  /** Receives connections for these ports. Returns their numbers. */
  join(ports: readonly Port[]): readonly number[] {
    const { ports: numbers } = this.#place;
    if (ports.length !== numbers.length) {
      throw new Error("The ports in `bindings` must be the same as in the parent process");
    }
    this.#ports = ports;
    return numbers;
  }

  /** The store as this process uses it. */
  share(store: Store): Store {
    if (!store.durable) {
      throw new Error(
        "`processes` needs a store that all processes share, but this store is in the memory of one process: pass a durable `store`",
      );
    }
    const listen = (listener: (text: string) => void): void => void this.#wakeups.push(listener);
    const wakeup = channelWakeup({
      get isOpen() {
        return process.connected;
      },
      send: (text) => new Promise((resolve) => this.#tell({ parley: "wakeup", text }, resolve)),
      listen,
    });
    return wakingStore(store, wakeup);
  }

  /** Reports that this process serves from now on. */
  begin(server: Server, handler: Pick<Handler, "wake" | "drain">): void {
    this.#server = server;
    this.#handler = handler;
    const agents = server.agents.map(({ id, url, cardUrl, card, tenant }) => ({
      id,
      url,
      cardUrl,
      card,
      ...(tenant !== undefined && { tenant }),
    }));
    this.#tell({ parley: "ready", agents });
  }

  /** Reports to the parent why `serve()` rejects in this process. Resolves once it is sent. */
  fail(thrown: unknown): Promise<void> {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new Promise((resolve) => this.#tell({ parley: "failed", message }, resolve));
  }

  /** Resolves when this process gets no more connections. */
  async leave(): Promise<void> {
    const left = new Promise<void>((resolve) => (this.#onLeft = resolve));
    if (process.connected) this.#tell({ parley: "leaving" });
    else return;
    await left;
  }

  #tell(report: Report, sent?: () => void): void {
    // If the parent has ended, `node:cluster` ends this process.
    if (process.connected) process.send?.(report, undefined, undefined, () => sent?.());
    else sent?.();
  }

  readonly #onMessage = (order: unknown, handle: unknown): void => {
    if (!isOurs<Order>(order)) return;
    if (order.parley === "connection") this.#take(order.port, handle);
    else if (order.parley === "wakeup") for (const listener of this.#wakeups) listener(order.text);
    else if (order.parley === "gone") this.#gone(order);
    else if (order.parley === "left") this.#onLeft?.();
    else if (order.parley === "exported") this.#exports.end(order.id);
    else if (order.parley === "signal" || order.parley === "delete" || order.parley === "export")
      void this.#answer(order);
    else if (order.parley === "drain") this.#drain();
    else if (order.parley === "close") void this.#close(order.grace);
  };

  #take(port: number, socket: unknown): void {
    // Reported before anything is read: until then, the parent may give the connection to another process.
    this.#tell({ parley: "taken" });
    // The connection was closed on the way.
    if (!(socket instanceof Socket)) return;
    if (this.#server === undefined) socket.destroy();
    else this.#ports[port]?.take(socket);
  }

  async #answer(order: Call): Promise<void> {
    const { call } = order;
    const server = this.#server;
    try {
      if (order.parley === "export" && server !== undefined) {
        const piece = await this.#exports.next(order.id, () => server.exportOwner(order.owner));
        return this.#tell({ parley: "answered", call, ...(piece !== undefined && { piece }) });
      }
      if (order.parley === "signal") await server?.signal(...order.event);
      const erased =
        order.parley === "delete" ? await server?.deleteOwner(order.owner, { scrub: order.scrub }) : undefined;
      this.#tell({ parley: "answered", call, ...(erased && { erased }) });
    } catch (thrown) {
      this.#tell({ parley: "answered", call, error: sentError(thrown) });
    }
  }

  #gone({ pid, isKilled }: Extract<Order, { readonly parley: "gone" }>): void {
    this.#ended.add(pid);
    if (isKilled) this.#killed.add(pid);
    // An earlier process with the same pid may have been killed.
    else this.#killed.delete(pid);
    void this.#handler?.wake().catch(() => {});
  }

  #drain(): void {
    this.#handler?.drain();
    for (const { connections } of this.#ports) connections.tell();
  }

  async #close(grace: number): Promise<void> {
    await this.#server?.close({ grace });
    this.#tell({ parley: "closed" });
  }
}

/** Characters per message, exceeded by at most one piece. */
const enough = 1 << 18;

/** Exports that this process reads for the parent, which requests one piece at a time. */
class Exports {
  readonly #open = new Map<number, AsyncIterator<string>>();

  /** The next piece. `undefined` after the last one. */
  async next(id: number, begin: () => ReturnType<Server["exportOwner"]>): Promise<string | undefined> {
    const pieces = this.#open.get(id) ?? begin()[Symbol.asyncIterator]();
    this.#open.set(id, pieces);
    let text = "";
    try {
      while (text.length < enough) {
        const next = await pieces.next();
        if (next.done === true) break;
        text += next.value;
      }
    } catch (error) {
      this.#open.delete(id);
      throw error;
    }
    if (text === "") this.#open.delete(id);
    return text === "" ? undefined : text;
  }

  /** The reader stopped early. */
  end(id: number): void {
    const pieces = this.#open.get(id);
    this.#open.delete(id);
    void pieces?.return?.().catch(() => {});
  }
}
