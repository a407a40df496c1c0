import { createHash } from "node:crypto";
import { join } from "node:path";
import process from "node:process";
import { CommandError } from "../errors.ts";
import type { Io } from "../io.ts";
import { systemKeychain, type Keychain } from "./keychain.ts";
import { PrivateFiles } from "./private-files.ts";

/** One scheme of one agent that the user has logged in with. Nothing of it is secret. */
export interface Login {
  /** URL of the agent. The login is for this address and all below it, and for nothing else. */
  readonly url: string;
  /** Name of the scheme on the agent's card. */
  readonly scheme: string;
  /** Of what kind the scheme is. */
  readonly kind: "apiKey" | "basic" | "bearer" | "oauth2";
  /** Who is logged in, where that is known. */
  readonly account?: string;
  /** What is needed to get new tokens, and is not secret: the issuer, the id of the client. */
  readonly settings: Readonly<Record<string, string>>;
  /** Further origins that get it, because the user named them. */
  readonly origins: readonly string[];
  /** When, in ISO 8601. */
  readonly since: string;
  /** Where its secrets are. */
  readonly secretsIn: "keychain" | "file";
}

/** What is secret of a login, by names that its kind gives. */
export type Secrets = Readonly<Record<string, string>>;

interface Stored extends Login {
  /** Only where `secretsIn` is `file`. */
  readonly secrets?: Secrets;
}

/** The folder of logins. It depends on the environment alone, so that a program without a home has no logins. */
export function loginFolder(env: Io["env"]): string | undefined {
  const { XDG_CONFIG_HOME, APPDATA, HOME } = env;
  const base =
    XDG_CONFIG_HOME !== undefined && XDG_CONFIG_HOME !== ""
      ? XDG_CONFIG_HOME
      : process.platform === "win32"
        ? APPDATA
        : HOME !== undefined && HOME !== ""
          ? join(HOME, ".config")
          : undefined;
  return base === undefined ? undefined : join(base, "parley", "logins");
}

/** The address that a login is for: without what only leads to its card. */
export function loginUrl(given: string): string {
  const url = new URL(given);
  const path = url.pathname.replace(/\/\.well-known\/[^/]*\.json$/, "").replace(/(?<!\/)\/+$/, "");
  return `${url.origin}${path}`;
}

/** Whether a login for one address is good for another: of the same origin, the same or below it. */
export function covers(login: string, url: string): boolean {
  const at = loginUrl(url);
  return at === login || at.startsWith(`${login}/`);
}

/** The logins of a user. Their secrets are in the keychain of the operating system where there is one, else in files. */
export class Logins {
  readonly #files: PrivateFiles;
  readonly #keychain: () => Promise<Keychain | undefined>;
  readonly #program: string;

  /** `program`: what to type so that this program runs, for what errors say. */
  constructor(folder: string, keychain: () => Promise<Keychain | undefined>, program = "parley") {
    this.#files = new PrivateFiles(folder);
    this.#keychain = keychain;
    this.#program = program;
  }

  /** The logins of a user, by the environment of the process. */
  static of({ env, program }: Pick<Io, "env" | "program">): Logins | undefined {
    const folder = loginFolder(env);
    return folder === undefined ? undefined : new Logins(folder, () => systemKeychain(env), program);
  }

  /** All of them, ordered by their URLs. */
  async list(): Promise<readonly Login[]> {
    const found: Login[] = [];
    for (const name of await this.#files.names()) {
      if (!name.endsWith(".json")) continue;
      const stored = await this.#read(name);
      if (stored !== undefined) found.push(withoutSecrets(stored));
    }
    return found.toSorted((a, b) => (`${a.url} ${a.scheme}` < `${b.url} ${b.scheme}` ? -1 : 1));
  }

  /** Those for an agent: one for each scheme, of the longest address that is good for it. */
  async for(url: string): Promise<readonly Login[]> {
    const fitting = (await this.list()).filter((login) => covers(login.url, url));
    const longest = Math.max(...fitting.map((login) => login.url.length));
    return fitting.filter((login) => login.url.length === longest);
  }

  /** Keeps a login, in place of one for the same scheme. Returns it as it is kept. */
  async save(login: Omit<Login, "secretsIn">, secrets: Secrets): Promise<Login> {
    const kept = await this.#keep(login, secrets);
    const { secretsIn } = kept;
    await this.#files.write(fileOf(login), `${JSON.stringify(kept, null, 2)}\n`);
    return { ...login, secretsIn };
  }

  /** Keeps other secrets of a login, where they were. One that the user has logged out of meanwhile stays deleted. */
  async update(login: Login, secrets: Secrets): Promise<void> {
    const stored = await this.#read(fileOf(login));
    if (stored === undefined) return;
    if (stored.secretsIn === "keychain") await (await this.#keychain())?.set(keyOf(login), JSON.stringify(secrets));
    else await this.#files.write(fileOf(login), `${JSON.stringify({ ...stored, secrets }, null, 2)}\n`);
  }

  /** Deletes a login with its secrets. */
  async remove(login: Login): Promise<void> {
    if (login.secretsIn === "keychain") await (await this.#keychain())?.delete(keyOf(login));
    await this.#files.remove(fileOf(login));
  }

  /** The secrets of a login. Throws where the keychain does not give them. */
  async secrets(login: Login): Promise<Secrets> {
    const stored = await this.#read(fileOf(login));
    if (stored?.secrets !== undefined) return stored.secrets;
    const again = `Log in again: ${this.#program} login ${login.url}`;
    if (stored === undefined) throw new CommandError(`you are logged out of ${login.url}. ${again}`);
    let text: string | undefined;
    try {
      text = await (await this.#keychain())?.get(keyOf(login));
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new CommandError(`the keychain does not open: ${reason}. Unlock it. ${again}`, { cause });
    }
    if (text === undefined) throw new CommandError(`the keychain has no secret for ${login.url}. ${again}`);
    return JSON.parse(text) as Secrets;
  }

  /** Runs something while no other process does so for the same login: a refresh token can often be used only once. */
  exclusively<T>(login: Login, run: () => Promise<T>): Promise<T> {
    return this.#files.exclusively(fileOf(login), run);
  }

  /** Where the file of a login is. */
  pathOf(login: Pick<Login, "url" | "scheme">): string {
    return this.#files.path(fileOf(login));
  }

  async #keep(login: Omit<Login, "secretsIn">, secrets: Secrets): Promise<Stored> {
    try {
      const keychain = await this.#keychain();
      if (keychain !== undefined) {
        await keychain.set(keyOf(login), JSON.stringify(secrets));
        return { ...login, secretsIn: "keychain" };
      }
    } catch {
      // There is a library for keychains, but no keychain: a server, a container.
    }
    return { ...login, secretsIn: "file", secrets };
  }

  async #read(name: string): Promise<Stored | undefined> {
    const text = await this.#files.read(name);
    if (text === undefined) return undefined;
    try {
      const value: unknown = JSON.parse(text);
      if (isStored(value) && fileOf(value) === name) return value;
    } catch {
      // Told below.
    }
    throw new CommandError(`${this.#files.path(name)} is not a login of this program. Delete it, and log in again`);
  }
}

function keyOf({ url, scheme }: Pick<Login, "url" | "scheme">): string {
  return `${url} ${scheme}`;
}

function fileOf(login: Pick<Login, "url" | "scheme">): string {
  return `${createHash("sha256").update(keyOf(login)).digest("hex").slice(0, 32)}.json`;
}

function withoutSecrets({ secrets: _, ...login }: Stored): Login {
  return login;
}

function isStored(value: unknown): value is Stored {
  const { url, scheme, kind, settings, origins, secretsIn } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return (
    [url, scheme, kind].every((text) => typeof text === "string") &&
    typeof settings === "object" &&
    settings !== null &&
    Array.isArray(origins) &&
    (secretsIn === "keychain" || secretsIn === "file")
  );
}
