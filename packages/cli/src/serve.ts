import cluster from "node:cluster";
import { mkdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { auditLog } from "@parley/a2a/internal/protocol/index";
import { memoryStore, type Store } from "@parley/server/internal/store/index";
import { isLoopback, silentLogger, type Logger } from "@parley/a2a/internal/base/index";
import { serve as serveAgents, type ServeOptions as HostOptions, type Server } from "@parley/node";
import { defined } from "@parley/a2a/internal/base/defined";
import { authenticatorOf, type CallerOptions } from "./callers.ts";
import { UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { loadAgents } from "./modules.ts";
import { openFile } from "./stores.ts";
import { type LogFormat, type logLevels, logTo, print, styleFor } from "./output/text.ts";
import { line } from "@parley/a2a/internal/base/display";

export interface ServeOptions extends CallerOptions {
  readonly port: number;
  readonly host: string;
  readonly publicUrl?: string;
  readonly store: string;
  readonly processes?: number | "cores";
  readonly cors?: readonly string[];
  readonly grpc?: boolean;
  readonly console?: boolean;
  readonly push?: boolean;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly cardKey?: readonly string[];
  readonly audit?: boolean;
  readonly trustProxy?: readonly string[];
  readonly insecure?: boolean;
  readonly drainDelay?: number;
  readonly grace: number;
  readonly logLevel?: (typeof logLevels)[number];
  readonly logFormat?: LogFormat;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

async function openStore(io: Io, where: string, logger: Logger): Promise<Store> {
  if (where === "memory") return memoryStore();
  const path = resolve(io.cwd, where);
  return openFile(where, async ({ sqliteStore }) => {
    await mkdir(dirname(path), { recursive: true });
    return sqliteStore({ path, logger });
  });
}

function announce(io: Io, server: Server, options: ServeOptions): void {
  const agents = server.agents.map(({ card, url, tenant }) => ({ name: card.name, url, ...defined({ tenant }) }));
  print(io, options, { url: server.url, port: server.port, agents }, (style) =>
    agents
      .map(({ name, url, tenant }) => {
        const where = tenant === undefined ? "" : ` (tenant ${line(tenant)})`;
        return `${style("bold", line(name))} is ready at ${style("cyan", url)}${where}\n`;
      })
      .join(""),
  );
}

/** Rejects options that would serve other machines unsafely. */
function checkReach(options: ServeOptions, open: boolean): void {
  if ((options.tlsCert === undefined) !== (options.tlsKey === undefined)) {
    throw new UsageError("--tls-cert and --tls-key must be passed together");
  }
  if (isLoopback(options.host)) return;
  const reach = `other machines can reach ${options.host}`;
  if (open && options.insecure !== true) {
    throw new UsageError(
      `${reach}. Pass --token, --api-key or --issuer to authenticate callers, or --insecure to serve everyone`,
    );
  }
  if (options.publicUrl === undefined) {
    throw new UsageError(`${reach}. Pass --public-url with the URL of this server, which the card tells clients`);
  }
  if (options.tlsCert === undefined && options.trustProxy === undefined && options.insecure !== true) {
    throw new UsageError(
      `${reach}, and anyone on the network could read plain HTTP. Pass --tls-cert and --tls-key, --trust-proxy for a proxy that terminates TLS, or --insecure to allow plain HTTP`,
    );
  }
}

function tlsOf({ cwd }: Io, { tlsCert, tlsKey }: ServeOptions): HostOptions["tls"] {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  return { certFile: resolve(cwd, tlsCert), keyFile: resolve(cwd, tlsKey) };
}

/** Whether to serve the console or the operators' API by default: if only this machine can reach the server, and no agent has that path. */
function hasOwn(
  name: "console" | "ops",
  agents: Awaited<ReturnType<typeof loadAgents>>,
  { host, publicUrl, trustProxy }: ServeOptions,
  open: boolean,
): boolean {
  const isLocal = isLoopback(host) && (publicUrl === undefined || isLoopback(new URL(publicUrl).hostname));
  const mounts: readonly { readonly path?: string }[] = Array.isArray(agents) ? agents : [];
  const isTaken = mounts.some(({ path = "" }) => new RegExp(`^/${name}(?:/|$)`).test(path));
  return open && isLocal && trustProxy === undefined && !isTaken;
}

/** The keys of `--card-key`, which sign the cards. */
async function cardKeys(io: Io, files: readonly string[] = []): Promise<Pick<HostOptions, "signCards">> {
  if (files.length === 0) return {};
  const { privateKeys } = await import("./card.ts");
  return { signCards: { keys: await privateKeys(files, io.cwd) } };
}

/** Wraps the start of listening. `parley dev` waits there for the previous server to release the port. */
export type AroundListen = (listen: () => Promise<Server>) => Promise<Server>;

/** `parley serve`. Returns the exit code. */
export async function serve(io: Io, file: string, options: ServeOptions, around?: AroundListen): Promise<number> {
  const authenticator = authenticatorOf(options, io.env);
  checkReach(options, authenticator === undefined);
  const signing = await cardKeys(io, options.cardKey);
  const format = options.logFormat ?? (io.stderr.terminal ? "text" : "json");
  const level = options.logLevel ?? (options.verbose === true ? "debug" : "info");
  const logger = level === "off" ? silentLogger : await logTo(io, level, format);
  // The text log of a terminal has audit records by default; any other log only with --audit.
  const isAudited = options.audit ?? (io.stderr.terminal && format === "text");
  const agents = await loadAgents(file, io.cwd);
  const withConsole = options.console ?? hasOwn("console", agents, options, authenticator === undefined);
  const { processes } = options;
  const isMany = processes !== undefined && processes !== 1;
  if (isMany && options.store === "memory")
    throw new UsageError("--processes needs a shared database, so it excludes --store memory");
  // With several processes, each of them opens the store, and this one does not.
  const store = isMany ? undefined : await openStore(io, options.store, logger);
  try {
    const server = await (around ?? ((listen) => listen()))(() =>
      serveAgents(agents, {
        port: options.port,
        host: options.host,
        store: store ?? (() => openStore(io, options.store, logger)),
        logger,
        signals: false,
        grace: options.grace * 1000,
        ...signing,
        ...defined({
          drainDelay: options.drainDelay === undefined ? undefined : options.drainDelay * 1000,
          processes,
          publicUrl: options.publicUrl,
          authenticator,
          audit: isAudited ? auditLog(logger) : undefined,
          cors: options.cors && { origins: options.cors.includes("*") ? ("*" as const) : options.cors },
          grpc: options.grpc,
          push: options.push,
          console: withConsole,
          operators: withConsole && hasOwn("ops", agents, options, authenticator === undefined),
          tls: tlsOf(io, options),
          trustProxy: options.trustProxy,
          insecure: options.insecure,
        }),
      }),
    );
    const stopped = new Promise<void>((done) => io.onInterrupt(() => done()));
    if (cluster.isPrimary) announce(io, server, options);
    if (around !== undefined && withConsole && options.json !== true)
      io.stdout.write(`Talk to it at ${styleFor(io.stdout, io.env)("cyan", `${server.url}/console/`)}\n`);
    await stopped;
    const stopping =
      around === undefined ? "Stopping; press Ctrl-C again to stop at once." : "Finishing running tasks.";
    // A JSON log must contain only JSON lines.
    if (!cluster.isPrimary) logger.debug(stopping);
    else if (format === "json" && level !== "off") logger.info(stopping);
    else io.stderr.write(`${stopping}\n`);
    await server.close();
  } finally {
    await store?.close();
  }
  return 0;
}
