import type { ServerOptions as TlsOptions } from "node:https";
import {
  createHandler,
  silentLogger,
  type Agent,
  type AgentMount,
  type Handler,
  type HandlerOptions,
  type Logger,
  type ServedAgent,
} from "@parley/a2a";
import type { Store } from "@parley/a2a/store";
import { addressOf, isLoopback, urlOf } from "./bind.ts";
import { defaultStore } from "./default-store.ts";
import { dispatch } from "./dispatch.ts";
import { Responder, type HttpOptions } from "./http.ts";
import { Port } from "./port.ts";
import { processLease } from "./process-lease.ts";
import { onStopSignal } from "./signals.ts";

/** What `serve` takes, beside the options of `createHandler`. */
export interface ServeOptions extends Omit<HandlerOptions, "store" | "publicUrl">, HttpOptions {
  /** Default 4000; 0 takes any free port. */
  readonly port?: number;
  /** Name or address to listen on. Default `127.0.0.1`: this machine alone. */
  readonly host?: string;
  /**
   * The URL that cards give out: how clients reach this server. Default: the address it listens on, where that is a
   * loopback one; for any other it has to be said, since nobody elsewhere can use `0.0.0.0`.
   */
  readonly publicUrl?: string;
  /**
   * Where tasks live. Default: SQLite in `.parley/parley.db` below the working directory where `@parley/sql` is installed,
   * else memory, with a warning to the logger. A store that is given stays open when the server closes.
   */
  readonly store?: Store;
  /** Certificate and key, as `node:https` takes them: the server then speaks HTTPS, and HTTP/2 with who asks for it. */
  readonly tls?: TlsOptions;
  /** Serves an address beyond this machine without an authenticator: whoever reaches it may use the agents (D14). */
  readonly insecure?: boolean;
  /** Whether SIGTERM and SIGINT close the server before the process ends of them (default true). A second one does not wait. */
  readonly signals?: boolean;
  /** Default of `close`, and what signals give, in milliseconds. Default 10 s. */
  readonly grace?: number;
}

export interface CloseOptions {
  /** How long turns that are under way may go on, in milliseconds; what is left then goes to the next server on this store. */
  readonly grace?: number;
}

/** A running server. */
export interface Server {
  /** Where it listens: `http://127.0.0.1:4000`. */
  readonly url: string;
  readonly port: number;
  /** What is served, with the addresses that the cards say. */
  readonly agents: readonly ServedAgent[];
  /**
   * Stops: takes no new connections, lets calls and turns finish within the grace, then ends the streams that are left, so
   * that their clients go on elsewhere. Always comes to an end; called again it gives the same promise.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** What the handler gets beyond its grace, and the last answers to reach their readers, in milliseconds. */
const patience = 1_000;

/**
 * Serves one agent at the root, or several by path and by tenant, over JSON-RPC and REST on one port.
 * Rejects where an option is missing or wrong, and where the port cannot be had.
 */
export async function serve(agents: Agent | readonly AgentMount[], options: ServeOptions = {}): Promise<Server> {
  const { host = "127.0.0.1", port: wanted = 4000, logger = silentLogger, tls, signals = true } = options;
  const address = await addressOf(host);
  if (!isLoopback(address)) refuseOpenDoor(host, options);

  const main = new Port({ ...(tls !== undefined && { tls }) });
  const store = options.store ?? (await defaultStore(logger));
  const release = async (): Promise<void> => {
    if (options.store === undefined) await store.close();
  };

  let port: number;
  let handler: Handler;
  try {
    port = await main.bind(address, wanted);
    const publicUrl = options.publicUrl ?? urlOf(host, port, tls !== undefined);
    handler = createHandler(agents, { ...options, store, publicUrl, lease: { ...processLease(), ...options.lease } });
  } catch (error) {
    main.drain();
    await release();
    throw error;
  }
  // From here on nothing waits, so no request can come before there is someone to answer it.
  const responder = new Responder(handler.handle, options, () => main.connections.draining);
  main.answer(dispatch(main, responder, logger), logger);

  let closing: Promise<void> | undefined;
  const close = (grace: number): Promise<void> => {
    closing ??= (async () => {
      forgetSignals();
      main.drain();
      await within(grace + patience, handler.close({ grace }), logger);
      await main.end(patience);
      await release();
    })();
    return closing;
  };
  const forgetSignals = signals ? onStopSignal(() => close(options.grace ?? defaultGrace)) : () => {};
  return {
    url: urlOf(host, port, tls !== undefined),
    port,
    agents: handler.agents,
    close: ({ grace = options.grace ?? defaultGrace } = {}) => close(grace),
  };
}

const defaultGrace = 10_000;

/** Others reach this address: they must be told apart or welcomed on purpose (D14), and need a URL that leads here. */
function refuseOpenDoor(host: string, { authenticator, insecure = false, publicUrl }: ServeOptions): void {
  if (authenticator === undefined && !insecure) {
    throw new Error(
      `${host} can be reached from other machines, and no authenticator says who may use the agents: give one, or say \`insecure: true\``,
    );
  }
  if (publicUrl === undefined) {
    throw new Error(`${host} can be reached from other machines: say under which \`publicUrl\` they find it`);
  }
}

/** Waits for work that should end by itself, but no longer than `ms`. */
async function within(ms: number, work: Promise<void>, logger: Logger): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      logger.warn("The agents did not stop in time");
      resolve();
    }, ms);
  });
  await Promise.race([
    late,
    work.catch((cause: unknown) => logger.error("The agents did not stop cleanly", { cause })),
  ]);
  clearTimeout(timer);
}
