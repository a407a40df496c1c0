import { writeSync } from "node:fs";
import { memoryStore, type Logger } from "@parley/a2a";
import { serve, type ServeOptions } from "@parley/node";
import { fileBlobs } from "@parley/node/blobs";
import { sqliteStore } from "@parley/sql/sqlite";
import { answer } from "./answer.ts";
import { agents, speak, type AgentName } from "./agents.ts";

/* The process of a server that is attacked: server.ts SETTINGS, which are JSON. */

export interface ServerSettings {
  /** A file, or `memory`. */
  readonly store: string;
  /** A folder for large files. Default: they are in the store. */
  readonly blobs?: string;
  /** Default: only the actor, at the root. */
  readonly mounts?: readonly { readonly agent: AgentName; readonly path?: string; readonly id?: string }[];
  readonly options?: Pick<ServeOptions, "lease" | "limits" | "stallTimeout" | "keepAlive" | "pollInterval">;
}

const {
  store: place,
  blobs,
  mounts = [{ agent: "actor" }],
  options,
}: ServerSettings = JSON.parse(process.argv[2] ?? "");

function line(level: string): Logger["info"] {
  return (message, fields = {}) => {
    const detail = JSON.stringify(fields, (_name, value: unknown) => (value instanceof Error ? value.stack : value));
    writeSync(2, `${level} ${message} ${detail.slice(0, 2_000)}\n`);
  };
}

const server = await serve(
  await Promise.all(mounts.map(async ({ agent, ...where }) => ({ agent: await agents[agent](), ...where }))),
  {
    port: 0,
    signals: false,
    store: place === "memory" ? memoryStore() : await sqliteStore({ path: place }),
    logger: { debug() {}, info() {}, warn: line("warn"), error: line("error") },
    ...(blobs !== undefined && { blobs: { store: fileBlobs(blobs) } }),
    ...options,
  },
);
answer({ speak }, server.url);
