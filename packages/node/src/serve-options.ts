import type { ServerOptions as TlsOptions } from "node:https";
import type { Logger } from "@parley/a2a/internal/base/index";
import { checkOptions } from "@parley/a2a/internal/model/index";
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

/** How `serve` speaks gRPC. */
export interface GrpcServing {
  /** A port for gRPC alone; 0 takes any free port, which `server.ports` names. Default: the port of the server. */
  readonly port?: number;
  /** The address of gRPC on cards: `grpc.example.com:443`. Default: host and port of the agent's own URL. */
  readonly url?: string;
}

/** Where `serve` mounts the console. */
export interface ConsoleServing {
  /** Path below `publicUrl`. It must not be an address of an agent. Default `/console`. */
  readonly path?: string;
}

/** Options of `serve`, in addition to those of `createHandler`. */
export interface ServeOptions
  extends Omit<HandlerOptions, "bindings" | "store" | "publicUrl" | "logger" | "facts">, Omit<HttpOptions, "logger"> {
  /** The port to listen on; 0 takes any free port. Default 4000. */
  readonly port?: number;
  /** Host name or address to listen on. Default `127.0.0.1`, which only this machine can reach. */
  readonly host?: string;
  /**
   * The URL of this server for clients, which cards contain. Required where the server listens on another address than a
   * loopback address, because clients cannot use `0.0.0.0`. Default: the address that it listens on.
   */
  readonly publicUrl?: string;
  /**
   * Where tasks are kept, or a function that opens it in each process that serves. Default: SQLite in `.parley/parley.db` below the working
   * directory. A store that you pass stays open when the server closes; what a function has opened is closed.
   */
  readonly store?: Store | (() => Store | Promise<Store>);
  /**
   * How many processes serve, on one port. They share the store, which has to be durable, and any of them takes any request. The program
   * runs in each of them, and in the process that starts them, which only passes connections on: `cluster.isPrimary` of `node:cluster` tells
   * it apart. `"cores"`: as many as the machine runs at once. Default 1: this process serves.
   */
  readonly processes?: number | "cores";
  /**
   * Where the server logs errors, with their stacks, and what an operator should know: a logger, or the level of `standardLogger`, which
   * writes to standard error: text on a terminal, otherwise lines of JSON. `false`: no log. With a level, on a terminal, the log also has
   * what `audit` is told, such as the states of tasks, unless `audit` is set or `NODE_ENV` is `production`. Default `"info"`.
   */
  readonly logger?: Logger | LogLevel | false;
  /**
   * The bindings, in the order of the cards. A binding that recognizes its requests by their headers may have a port of its
   * own: `{ binding: grpcBinding(), port: 50051 }`. Default: `jsonRpcBinding()`, `restBinding()` and, with `grpc`, `grpcBinding()`.
   */
  readonly bindings?: readonly (ServerBinding | BindingOnPort)[];
  /**
   * Whether the server also speaks gRPC and gRPC-Web, and cards list them. It needs `@parley/grpc`. Some clients refuse a card that lists
   * gRPC: ADK for Python from 2.13 on. It adds to the default of `bindings`, and goes with no other. Default false.
   */
  readonly grpc?: boolean | GrpcServing;
  /**
   * Whether browsers get the console at `/console`: a web application to talk to the agents and to see their tasks. It needs
   * `@parley/console`. Anyone may load the application; its data and the agents are behind `authenticator`. Without an authenticator only
   * this machine may reach the server, whatever `insecure` is. Default false.
   */
  readonly console?: boolean | ConsoleServing;
  /**
   * Certificate and key, as for `node:https`, or the names of their files: `{ certFile, keyFile }`. Files are read again when they
   * change. The server then speaks HTTPS (TLS 1.2 or newer), and HTTP/2 with clients that support it. Where the authenticator has a
   * scheme of mutual TLS, clients are asked for certificates, and may have none.
   */
  readonly tls?: TlsOptions | TlsFiles;
  /**
   * The header `Strict-Transport-Security` of answers over TLS (RFC 6797), also where `trustProxy` says that the client's connection
   * is encrypted. Browsers then use only HTTPS for the host. `false`: none. Default `max-age=31536000`, and none where `publicUrl` is an
   * address of this machine.
   */
  readonly hsts?: string | false;
  /**
   * Host names that requests may use, in addition to loopback names and the host of `publicUrl`. `["*"]` allows any name.
   * Default: no further names where the server listens on a loopback address without an authenticator, because a page in a
   * browser on this machine could let its own name resolve to this machine and use the agents (DNS rebinding). Otherwise any
   * name.
   */
  readonly allowedHosts?: readonly string[];
  /**
   * Allows to serve other machines without an authenticator, and over plain HTTP: everyone who reaches the address may use the agents,
   * and everyone on the way can read along. Default false.
   */
  readonly insecure?: boolean;
  /**
   * Whether webhooks may use a key of the file `.parley/development-key` below the working directory, which is made when it is missing, so that
   * they survive a restart. Only where nothing else has keys, only this machine reaches the server, and its store is durable; never where
   * `NODE_ENV` is `production`. `false`: the key ends with the process. Default true.
   */
  readonly developmentKey?: boolean;
  /** Whether the server closes at SIGTERM and SIGINT before the process ends. A second signal ends the process at once. Default true. */
  readonly signals?: boolean;
  /**
   * How long the server still accepts and serves everything after a stop signal or `close()`, in milliseconds, while `/readyz` is 503 already.
   * Set it to what your load balancer needs to notice that, such as 5 s. Then the port closes, and the grace begins. Default 0.
   */
  readonly drainDelay?: number;
  /** How long running turns may continue after the port has closed, in milliseconds, for `close()` and stop signals. Default 10 s. */
  readonly grace?: number;
}

/** How a server closes. */
export interface CloseOptions {
  /** How long everything is still served first, in milliseconds. Default: the option `drainDelay` of `serve`. */
  readonly drainDelay?: number;
  /**
   * How long running turns may continue then, in milliseconds. Unfinished resumable tasks continue on the next server of this store. Default:
   * the option `grace` of `serve`.
   */
  readonly grace?: number;
}

/** A running server. */
export interface Server {
  /** The URL that it listens on: `http://127.0.0.1:4000`. The same in each of its processes. */
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
   * Tells a task of something that has happened outside, for `turn.waitFor()`: as `signal` of the handler.
   *
   * @example
   * ```ts
   * const server = await serve(agent);
   * await server.signal("0199-task", "approved", { by: "ada" });
   * ```
   */
  readonly signal: Handler["signal"];
  /** Deletes all that a caller has, as `deleteOwner` of the handler: with several processes, in each of them. */
  readonly deleteOwner: Handler["deleteOwner"];
  /** All that a caller has, as JSON Lines: `exportOwner` of the handler: with several processes, read by one of them. */
  readonly exportOwner: Handler["exportOwner"];
  /**
   * Stops the server. It serves everything for `drainDelay`, closes the port, lets calls and turns finish within `grace`, and then ends the
   * remaining streams, so that their clients continue elsewhere. It always resolves. Further calls return the same promise. With `processes`, it ends
   * all of them where it is called in the process that started them, and else lets go of the connections of its own process.
   */
  close(options?: CloseOptions): Promise<void>;
}

/* The names of the options of `serve`, for callers without types. */

/** Those that the handler does not have. */
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

/** Refuses options that `serve` does not have, and names the one that was probably meant. */
export function checkServeOptions(options: ServeOptions): void {
  checkHandlerOptions("serve()", options, own);
  if (typeof options.grpc === "object" && options.grpc !== null) checkOptions("grpc", options.grpc, ofGrpc);
  if (typeof options.console === "object" && options.console !== null)
    checkOptions("console", options.console, ofConsole);
}

export function forHandler<Options extends object>(options: Options): Omit<Options, Own> {
  return Object.fromEntries(Object.entries(options).filter(([name]) => !Object.hasOwn(own, name))) as Omit<
    Options,
    Own
  >;
}
