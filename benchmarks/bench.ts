import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Child } from "./ipc.ts";
import type { PacedLoad, RequestLoad, RequestOutcome } from "./load/requests.ts";
import type { CrowdLoad, FanInLoad, FanInOutcome, ServedOutcome, StreamLoad, StreamOutcome } from "./load/streams.ts";
import type { Request } from "./load/http.ts";
import type { Address, Usage } from "./servers/control.ts";
import type { Filling } from "./servers/fill.ts";

/** `push` is Parley with webhooks, `auth` is Parley with required JWTs. */
export type ServerName = "parley" | "push" | "auth" | "official" | "raw";

/** A measured server, in a separate process. */
export interface Server extends Address {
  readonly name: ServerName;
  usage(): Promise<Usage>;
  settled(): Promise<Usage>;
  /** Its gRPC address. Some servers have one from the start, others open one on request. */
  grpc(): Promise<string>;
  /** Only for Parley. */
  fill(filling: Filling): Promise<void>;
  /** A token for it. Only for `auth`. */
  token(): Promise<string>;
  stop(): Promise<void>;
  /** Kills it, like a crash. */
  kill(): Promise<void>;
}

/** The load program, in a separate process. */
export interface Load {
  requests(load: RequestLoad): Promise<RequestOutcome>;
  paced(load: PacedLoad): Promise<RequestOutcome>;
  stream(load: StreamLoad): Promise<StreamOutcome>;
  fanIn(load: FanInLoad): Promise<FanInOutcome>;
  openCrowd(load: CrowdLoad): Promise<void>;
  hearCrowd(input: { readonly seconds: number }): Promise<readonly number[]>;
  emitToCrowd(input: { readonly request: Request }): Promise<ServedOutcome>;
  closeCrowd(): Promise<void>;
}

export interface BenchOptions {
  readonly quick: boolean;
  /** Folder for CPU profiles of Parley's server. */
  readonly profile?: string;
  /** Receives progress messages. */
  readonly progress: (text: string) => void;
}

/** The processes and tools of a case. Closing it ends every process that it started. */
export class Bench {
  readonly quick: boolean;
  readonly #options: BenchOptions;
  readonly #children = new Set<Child>();
  /** Processes that are still starting. If one fails to start, the others must be ended too. */
  readonly #starting = new Set<Promise<Child>>();
  readonly #folder = mkdtempSync(join(tmpdir(), "bench-"));
  readonly #ends: (() => Promise<void>)[] = [];
  #files = 0;

  constructor(options: BenchOptions) {
    this.#options = options;
    this.quick = options.quick;
  }

  /** Chooses a size: smaller for a quick run. */
  size(full: number, quick: number): number {
    return this.quick ? quick : full;
  }

  /** The warm-up of a request subject. Slow servers, such as the official SDK on SQLite, stop at the time limit. */
  get warmUp(): { readonly most: number; readonly seconds: number } {
    return { most: this.size(15_000, 1_000), seconds: this.size(6, 0.3) };
  }

  progress(text: string): void {
    this.#options.progress(text);
  }

  /** A temporary file, which is removed after the run. */
  file(suffix: string): string {
    return join(this.#folder, `${++this.#files}${suffix}`);
  }

  async child(module: string, args: readonly string[] = [], execArgv: readonly string[] = []): Promise<Child> {
    const starting = Child.start(module, args, execArgv).then((child) => {
      this.#children.add(child);
      return child;
    });
    this.#starting.add(starting);
    try {
      return await starting;
    } finally {
      this.#starting.delete(starting);
    }
  }

  async server(
    name: ServerName,
    store: "memory" | "sqlite" = "memory",
    execArgv: readonly string[] = [],
    more: readonly string[] = [],
  ): Promise<Server> {
    const child = await this.child(
      `servers/${name}`,
      [store === "memory" ? store : this.file(".db"), ...more],
      [...execArgv, ...this.#profiling(name)],
    );
    return this.#serverOf(name, child);
  }

  /** Starts another program that serves Parley: a module in `benchmarks/servers`. */
  async parley(module: string, args: readonly string[]): Promise<Server> {
    return this.#serverOf("parley", await this.child(`servers/${module}`, args, this.#profiling("parley")));
  }

  /** Registers a function that runs at the end of the case, after its processes have ended. */
  atEnd(end: () => Promise<void>): void {
    this.#ends.push(end);
  }

  async #serverOf(name: ServerName, child: Child): Promise<Server> {
    return {
      ...(await child.ask<Address>("address")),
      name,
      usage: () => child.ask("usage"),
      settled: () => child.ask("settled"),
      grpc: () => child.ask("grpc"),
      fill: (filling) => child.ask("fill", filling),
      token: () => child.ask("token"),
      stop: () => this.#stop(child),
      kill: () => child.kill(),
    };
  }

  #profiling(name: ServerName): readonly string[] {
    const { profile } = this.#options;
    const isParley = name === "parley" || name === "push" || name === "auth";
    return profile !== undefined && isParley ? ["--cpu-prof", `--cpu-prof-dir=${profile}`] : [];
  }

  async load(): Promise<Load> {
    const child = await this.child("load/main");
    return {
      requests: (load) => child.ask("requests", load),
      paced: (load) => child.ask("paced", load),
      stream: (load) => child.ask("stream", load),
      fanIn: (load) => child.ask("fanIn", load),
      openCrowd: (load) => child.ask("openCrowd", load),
      hearCrowd: (input) => child.ask("hearCrowd", input),
      emitToCrowd: (input) => child.ask("emitToCrowd", input),
      closeCrowd: () => child.ask("closeCrowd"),
    };
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#starting);
    await Promise.all([...this.#children].map((child) => this.#stop(child)));
    for (const end of this.#ends) await end();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #stop(child: Child): Promise<void> {
    await child.stop();
    this.#children.delete(child);
  }
}
