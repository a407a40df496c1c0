import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import type { ServerSettings } from "../processes/server.ts";
import { Child } from "./child.ts";

/** A server in a separate process. */
export interface Attacked extends Child {
  readonly url: string;
  readonly port: number;
}

export interface Attackable {
  /** Starts a server on this test's store, or on another one. */
  start(settings?: Partial<ServerSettings>, options?: { readonly ownClock?: boolean }): Promise<Attacked>;
  /** Starts a process that may die before it listens. */
  launch(settings?: Partial<ServerSettings>): Promise<Child>;
  /** Returns the folder of this test. */
  folder(): Promise<string>;
}

/** Starts servers for a test. Afterwards, ends them and removes their files. */
export function servers(store: "SQLite" | "memory" = "SQLite"): Attackable {
  let folder: Promise<string> | undefined;
  const children: Child[] = [];
  afterEach(async () => {
    await Promise.all(children.splice(0).map((child) => child.kill()));
    if (folder !== undefined) await rm(await folder, { recursive: true, force: true });
    folder = undefined;
  });
  const inFolder = (): Promise<string> => (folder ??= mkdtemp(join(tmpdir(), "parley-attack-")));
  const place = async (): Promise<string> => (store === "memory" ? "memory" : join(await inFolder(), "tasks.db"));
  const begin = async (
    settings: Partial<ServerSettings> = {},
    options?: { readonly ownClock?: boolean },
  ): Promise<Child> => {
    const child = new Child("server.ts", { store: await place(), ...settings }, options);
    children.push(child);
    return child;
  };
  return {
    folder: inFolder,
    launch: begin,
    async start(settings, options) {
      const child = await begin(settings, options);
      const url = String(await child.greeting);
      return Object.assign(child, { url, port: Number(new URL(url).port) });
    },
  };
}
