import { writeSync } from "node:fs";
import { fileBlobs, memoryStore, serve, type Logger, type ServeOptions } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { answer } from "./answer.ts";
import { slowBucket } from "./slow-bucket.ts";
import { agents, speak, type AgentName } from "./agents.ts";

/* The process of a server under attack: server.ts SETTINGS. The settings are JSON. */

export interface ServerSettings {
  /** A file path, or `memory`. */
  readonly store: string;
  /** A folder for large files, or `bucket` for a slow bucket. By default, the store keeps large files. */
  readonly blobs?: string;
  /** By default, the server has only the actor, at the root. */
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
    grpc: true,
    signals: false,
    store: place === "memory" ? memoryStore() : await sqliteStore({ path: place }),
    logger: { debug() {}, info() {}, warn: line("warn"), error: line("error") },
    ...(blobs !== undefined && { blobs: { store: blobs === "bucket" ? slowBucket() : fileBlobs(blobs) } }),
    ...options,
  },
);
answer({ speak, exported }, server.url);

/** Returns the length of an export of all data, and the last line of the export. */
async function exported(): Promise<{ readonly length: number; readonly end: string }> {
  let length = 0;
  let end = "";
  for await (const piece of server.exportOwner({ subject: "anonymous" })) {
    length += piece.length;
    end = (end + piece).slice(-200);
  }
  return { length, end: end.trimEnd().split("\n").at(-1) ?? "" };
}
