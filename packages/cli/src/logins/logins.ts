import { createHash } from "node:crypto";
import { join } from "node:path";
import process from "node:process";
import { CommandError } from "../errors.ts";
import type { Io } from "../io.ts";
import { systemKeychain, type Keychain } from "./keychain.ts";
import { PrivateFiles } from "./private-files.ts";

/** A login with one security scheme of one agent, without its secrets. */
export interface Login {
  /** URL of the agent. The login covers this URL and everything below it. */
  readonly url: string;
  /** Name of the scheme on the card. */
  readonly scheme: string;
  readonly kind: "apiKey" | "basic" | "bearer" | "oauth2";
  /** Who is logged in, if known. */
  readonly account?: string;
  /** Public settings for new tokens, such as issuer and client ID. */
  readonly settings: Readonly<Record<string, string>>;
  /** Additional origins that the user named. */
  readonly origins: readonly string[];
  /** In ISO 8601. */
  readonly since: string;
  readonly secretsIn: "keychain" | "file";
}

/** A login before its secrets are stored. */
export type NewLogin = Omit<Login, "secretsIn">;

/** The secrets of a login by name. The names depend on its kind. */
export type Secrets = Readonly<Record<string, string>>;

interface Stored extends Login {
  /** Only if `secretsIn` is `file`. */
  readonly secrets?: Secrets;
}

/** The folder of logins; `undefined` without a home folder. */
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

/** The URL of an agent, without the path of its card. */
export function loginUrl(given: string): string {
  const url = new URL(given);
  const path = url.pathname.replace(/\/\.well-known\/[^/]*\.json$/, "").replace(/(?<!\/)\/+$/, "");
  return `${url.origin}${path}`;
}

/** Whether a login covers a URL: the same one, or one below it. */
export function covers(login: string, url: string): boolean {
  const at = loginUrl(url);
  return at === login || at.startsWith(`${login}/`);
}

/** The logins of a user. Their secrets are in the keychain of the operating system, or else in files. */
export class Logins {
  readonly #files: PrivateFiles;
  readonly #keychain: () => Promise<Keychain | undefined>;
  readonly #program: string;

  /** `program`: how to run this program, for errors. */
  constructor(folder: string, keychain: () => Promise<Keychain | undefined>, program = "parley") {
    this.#files = new PrivateFiles(folder);
    this.#keychain = keychain;
    this.#program = program;
  }

  /** The logins of the user of this process. */
  static of({ env, program }: Pick<Io, "env" | "program">): Logins | undefined {
    const folder = loginFolder(env);
    return folder === undefined ? undefined : new Logins(folder, () => systemKeychain(env), program);
  }

  /** All logins, ordered by URL. */
  async list(): Promise<readonly Login[]> {
    const found: Login[] = [];
    for (const name of await this.#files.names()) {
      if (!name.endsWith(".json")) continue;
      const stored = await this.#read(name);
      if (stored === undefined) continue;
      const { secrets: _, ...login } = stored;
      found.push(login);
    }
    return found.toSorted((a, b) => (`${a.url} ${a.scheme}` < `${b.url} ${b.scheme}` ? -1 : 1));
  }

  /** The logins of an agent: one per scheme, with the longest URL that covers it. */
  async for(url: string): Promise<readonly Login[]> {
    const fitting = (await this.list()).filter((login) => covers(login.url, url));
    const longest = Math.max(...fitting.map((login) => login.url.length));
    return fitting.filter((login) => login.url.length === longest);
  }

  /** Stores a login, replacing one for the same scheme. */
  async save(login: NewLogin, secrets: Secrets): Promise<Login> {
    const kept = await this.#keep(login, secrets);
    const { secretsIn } = kept;
    await this.#files.write(fileOf(login), `${JSON.stringify(kept, null, 2)}\n`);
    return { ...login, secretsIn };
  }

  /** Replaces the secrets of a login. A login that was deleted meanwhile stays deleted. */
  async update(login: Login, secrets: Secrets): Promise<void> {
    const stored = await this.#read(fileOf(login));
    if (stored === undefined) return;
    if (stored.secretsIn === "keychain") await (await this.#keychain())?.set(keyOf(login), JSON.stringify(secrets));
    else await this.#files.write(fileOf(login), `${JSON.stringify({ ...stored, secrets }, null, 2)}\n`);
  }

  /** Deletes a login and its secrets. */
  async remove(login: Login): Promise<void> {
    if (login.secretsIn === "keychain") await (await this.#keychain())?.delete(keyOf(login));
    await this.#files.remove(fileOf(login));
  }

  /** The secrets of a login. Throws if the keychain does not return them. */
  async secrets(login: Login): Promise<Secrets> {
    const stored = await this.#read(fileOf(login));
    if (stored?.secrets !== undefined) return stored.secrets;
    const again = `Log in again: ${this.#program} login ${login.url}`;
    if (stored === undefined) throw new CommandError(`logged out of ${login.url}. ${again}`);
    let text: string | undefined;
    try {
      text = await (await this.#keychain())?.get(keyOf(login));
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new CommandError(`cannot open the keychain: ${reason}. Unlock it. ${again}`, { cause });
    }
    if (text === undefined) throw new CommandError(`the keychain has no secret for ${login.url}. ${again}`);
    return JSON.parse(text) as Secrets;
  }

  /** Runs a function under the lock of a login: a refresh token can often be used only once. */
  exclusively<T>(login: Login, run: () => Promise<T>): Promise<T> {
    return this.#files.exclusively(fileOf(login), run);
  }

  pathOf(login: Pick<Login, "url" | "scheme">): string {
    return this.#files.path(fileOf(login));
  }

  async #keep(login: NewLogin, secrets: Secrets): Promise<Stored> {
    try {
      const keychain = await this.#keychain();
      if (keychain !== undefined) {
        await keychain.set(keyOf(login), JSON.stringify(secrets));
        return { ...login, secretsIn: "keychain" };
      }
    } catch {
      // There may be no keychain, for example on a server or in a container.
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
      // Reported below.
    }
    throw new CommandError(`${this.#files.path(name)} is not a login of parley. Delete it and log in again`);
  }
}

function keyOf({ url, scheme }: Pick<Login, "url" | "scheme">): string {
  return `${url} ${scheme}`;
}

function fileOf(login: Pick<Login, "url" | "scheme">): string {
  return `${createHash("sha256").update(keyOf(login)).digest("hex").slice(0, 32)}.json`;
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
