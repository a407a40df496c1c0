import type { ServerOptions as TlsOptions } from "node:https";
import type { Logger } from "@parley/a2a/internal/base/index";
import { checkOptions } from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import {
  checkHandlerOptions,
  type Handler,
  type HandlerOptions,
  type ServedAgent,
  type ServerBinding,
} from "@parley/server/internal/handler";
import type { Store } from "@parley/server/internal/store/index";
import type { HttpOptions } from "./http/listener.ts";
import type { TlsFiles } from "./http/tls.ts";
import type { BindingOnPort } from "./listen.ts";
import type { LogLevel } from "./logger.ts";

/** Options of gRPC for `serve`. */
export interface GrpcServing {
  /** A separate port for gRPC; 0 takes any free port, which `server.ports` reports. Default: the port of the server. */
  readonly port?: number;
  /** The address of gRPC on cards: `grpc.example.com:443`. Default: host and port of the agent's own URL. */
  readonly url?: string;
}

/** Options of the console for `serve`. */
export interface ConsoleServing {
  /** Path below `publicUrl`. It must not be an address of an agent. Default `/console`. */
  readonly path?: string;
}

/** Options of `serve`, in addition to the options of `createHandler`. */
export interface ServeOptions
  extends Omit<HandlerOptions, "bindings" | "store" | "publicUrl" | "logger" | "facts">, Omit<HttpOptions, "logger"> {
  /** The port to listen on; 0 takes any free port. Default 4000. */
  readonly port?: number;
  /** Host name or address to listen on. Default `127.0.0.1`, which only this machine can reach. */
  readonly host?: string;
  /**
   * The URL of this server for clients, which cards contain. Required unless the server listens on a loopback address,
   * because clients cannot use `0.0.0.0`. Default: the address that it listens on.
   */
  readonly publicUrl?: string;
  /**
   * The store, or a function that opens it in each process that serves. Default: SQLite in `.parley/parley.db` below the working
   * directory. A store that you pass stays open when the server closes; a store from a function is closed.
   */
  readonly store?: Store | (() => Store | Promise<Store>);
  /**
   * The number of processes that serve, on one port. They share the store, which must be durable, and each of them can answer any request. The
   * program runs in each of them, and in the parent process, which only distributes connections: there, `cluster.isPrimary` of `node:cluster` is
   * true. `"cores"`: one per core. Default 1: this process serves.
   */
  readonly processes?: number | "cores";
  /**
   * The logger for errors, with their stacks, and for events for operators; or the level of `standardLogger`, which
   * writes to standard error: text on a terminal, otherwise lines of JSON. `false`: no log. With a level, on a terminal, the log also has
   * the records of `audit`, such as the states of tasks, unless `audit` is set or `NODE_ENV` is `production`. Default `"info"`.
   */
  readonly logger?: Logger | LogLevel | false;
  /**
   * The bindings, in the order of the cards. A binding that recognizes its requests by their headers may have a port of its
   * own: `{ binding: grpcBinding(), port: 50051 }`. Default: `jsonRpcBinding()`, `restBinding()` and, with `grpc`, `grpcBinding()`.
   */
  readonly bindings?: readonly (ServerBinding | BindingOnPort)[];
  /**
   * Also serves gRPC and gRPC-Web, and lists them on cards. Needs `@parley/grpc`. Some clients reject a card that lists
   * gRPC: ADK for Python 2.13 and newer. It extends the default of `bindings`, and cannot be combined with other values. Default false.
   */
  readonly grpc?: boolean | GrpcServing;
  /**
   * Serves the console at `/console`: a web application to talk to the agents and to see their tasks. Needs
   * `@parley/console`. Anyone may load the application; its data and the agents are behind `authenticator`. Without an authenticator, only
   * this machine may reach the server, even with `insecure`. Default false.
   */
  readonly console?: boolean | ConsoleServing;
  /**
   * Certificate and key, as for `node:https`, or the names of their files: `{ certFile, keyFile }`. Files are read again when they
   * change. The server then speaks HTTPS (TLS 1.2 or newer), and HTTP/2 with clients that support it. If the authenticator has a
   * scheme of mutual TLS, the server requests client certificates, but does not require them.
   */
  readonly tls?: TlsOptions | TlsFiles;
  /**
   * The header `Strict-Transport-Security` of answers over TLS (RFC 6797), including TLS that ends at a proxy of `trustProxy`. Browsers
   * then use only HTTPS for the host. `false`: none. Default `max-age=31536000`, or none if `publicUrl` is an
   * address of this machine.
   */
  readonly hsts?: string | false;
  /**
   * Host names that requests may use, in addition to loopback names and the host of `publicUrl`. `["*"]` allows any name.
   * Default: no further names if the server listens on a loopback address without an authenticator, because a page in a
   * browser on this machine could resolve its own name to this machine and use the agents (DNS rebinding). Otherwise any
   * name.
   */
  readonly allowedHosts?: readonly string[];
  /**
   * Lets other machines connect without an authenticator and over plain HTTP: anyone who reaches the address can use the agents, and
   * anyone on the network path can read the traffic. Default false.
   */
  readonly insecure?: boolean;
  /**
   * Stores a key for webhooks in the file `.parley/development-key` below the working directory, so that they survive a restart.
   * Only used without other keys, if only this machine reaches the server and its store is durable; never if
   * `NODE_ENV` is `production`. `false`: a temporary key. Default true.
   */
  readonly developmentKey?: boolean;
  /** Whether SIGTERM and SIGINT close the server before the process ends. A second signal ends the process immediately. Default true. */
  readonly signals?: boolean;
  /**
   * How long the server still serves everything after a stop signal or `close()`, in milliseconds, while `/readyz` already answers 503.
   * Set it to the time that your load balancer needs to notice, such as 5 s. Then the port closes, and the grace period begins. Default 0.
   */
  readonly drainDelay?: number;
  /** How long running turns may continue after the port has closed, in milliseconds, for `close()` and stop signals. Default 10 s. */
  readonly grace?: number;
}

/** Options of `Server.close()`. */
export interface CloseOptions {
  /** How long the server still serves everything, in milliseconds. Default: the option `drainDelay` of `serve`. */
  readonly drainDelay?: number;
  /**
   * How long running turns may continue after that, in milliseconds. Unfinished resumable tasks continue on the next server of this store.
   * Default: the option `grace` of `serve`.
   */
  readonly grace?: number;
}

/** A running server. */
export interface Server {
  /** The URL that it listens on: `http://127.0.0.1:4000`. The same in all of its processes. */
  readonly url: string;
  /** The port that it listens on. */
  readonly port: number;
  /** Ports of the bindings that have a port of their own, by their names: `{ GRPC: 50051 }`. */
  readonly ports: Readonly<Record<string, number>>;
  /** The agents, with their addresses and cards. */
  readonly agents: readonly ServedAgent[];
  /**
   * The agents, to add, replace and remove while the server runs. With `processes`, each process that serves has its own.
   *
   * @example
   * ```ts
   * const server = await serve([{ agent, path: "/weather" }]);
   * server.mounts.add({ agent, path: "/forecast" });
   * await server.mounts.remove("/weather");
   * ```
   */
  readonly mounts: Handler["mounts"];
  /**
   * Sends an event to a task that waits for it with `turn.waitFor()`, like `signal` of the handler.
   *
   * @example
   * ```ts
   * const server = await serve(agent);
   * await server.signal("0199-task", "approved", { by: "ada" });
   * ```
   */
  readonly signal: Handler["signal"];
  /** Deletes all data of a caller, like `deleteOwner` of the handler; with several processes, in each of them. */
  readonly deleteOwner: Handler["deleteOwner"];
  /** Exports all data of a caller as JSON Lines, like `exportOwner` of the handler. */
  readonly exportOwner: Handler["exportOwner"];
  /**
   * Stops the server. It serves everything for `drainDelay`, closes the port, lets calls and turns finish within `grace`, and then ends the
   * remaining streams, so that their clients continue elsewhere. It always resolves. Further calls return the same promise. With `processes`, it ends
   * all of them if the parent process calls it; in another process it closes only that process's connections.
   */
  close(options?: CloseOptions): Promise<void>;
}

/* The names of the options of `serve`, for callers without types. */

/** The options that the handler does not have. */
type Own = Exclude<keyof ServeOptions, keyof HandlerOptions>;

const own: Readonly<Record<Own, 1>> = {
  console: 1,
  developmentKey: 1,
  drainDelay: 1,
  grace: 1,
  grpc: 1,
  host: 1,
  hsts: 1,
  insecure: 1,
  port: 1,
  processes: 1,
  signals: 1,
  stallTimeout: 1,
  tls: 1,
  trustProxy: 1,
};

const ofGrpc = { port: 1, url: 1 } satisfies Record<keyof GrpcServing, 1>;

const ofConsole = { path: 1 } satisfies Record<keyof ConsoleServing, 1>;

/** Rejects unknown options, and suggests the one that was probably meant. */
export function checkServeOptions(options: ServeOptions): void {
  checkHandlerOptions("serve()", options, own);
  if (isObject(options.grpc)) checkOptions("grpc", options.grpc, ofGrpc);
  if (isObject(options.console)) checkOptions("console", options.console, ofConsole);
}

export function forHandler<Options extends object>(options: Options): Omit<Options, Own> {
  return Object.fromEntries(Object.entries(options).filter(([name]) => !Object.hasOwn(own, name))) as Omit<
    Options,
    Own
  >;
}
