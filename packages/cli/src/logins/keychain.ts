import { randomBytes } from "node:crypto";
import type { Io } from "../io.ts";

/** Stores short secrets by name. */
export interface Keychain {
  get(name: string): Promise<string | undefined>;
  set(name: string, value: string): Promise<void>;
  delete(name: string): Promise<void>;
}

/** The name of this program in the keychain. */
const service = "parley";

/** Long enough for a keychain that asks the user for a password. */
const timeoutMs = 120_000;

/**
 * The keychain of the operating system: Keychain on macOS, Credential Manager on Windows, the Secret Service on Linux. `undefined`
 * without one, or with `PARLEY_KEYCHAIN=off`.
 */
export async function systemKeychain(env: Io["env"]): Promise<Keychain | undefined> {
  if (env["PARLEY_KEYCHAIN"] === "off") return undefined;
  // An optional dependency, because some platforms have no build.
  const module = await import("@napi-rs/keyring").catch(() => undefined);
  if (module === undefined) return undefined;
  // The default falls back to the keyring of the Linux kernel, which is lost at the next boot.
  const options = { linux: { store: "secret-service" as const } };
  const entry = (name: string): InstanceType<typeof module.AsyncEntry> => new module.AsyncEntry(service, name, options);
  const keychain: Keychain = {
    get: async (name) => (await entry(name).getPassword(AbortSignal.timeout(timeoutMs))) ?? undefined,
    set: (name, value) => entry(name).setPassword(value, AbortSignal.timeout(timeoutMs)),
    delete: async (name) => void (await entry(name).deleteCredential(AbortSignal.timeout(timeoutMs))),
  };
  return inPieces(keychain);
}

/** Windows limits an entry to 2,560 bytes of UTF-16. */
const maxEntryLength = 1200;

/**
 * Stores a long text in several entries. The entry of its name lists them, and is written last, so that a crash leaves the old text or the
 * new one.
 */
export function inPieces(keychain: Keychain): Keychain {
  const piecesOf = (listed: string | undefined): readonly string[] => {
    const [, id = "", count] = /^pieces ([\da-f]+) (\d{1,4})$/.exec(listed ?? "") ?? [];
    return Array.from({ length: Number(count ?? 0) }, (_, i) => `${id} ${i}`);
  };
  const drop = async (names: readonly string[]): Promise<void> => {
    for (const name of names) await keychain.delete(name);
  };
  return {
    async get(name) {
      const found = await keychain.get(name);
      const pieces = piecesOf(found);
      if (pieces.length === 0) return found;
      let text = "";
      for (const piece of pieces) {
        const part = await keychain.get(piece);
        if (part === undefined) return undefined;
        text += part;
      }
      return text;
    },
    async set(name, value) {
      const before = piecesOf(await keychain.get(name));
      if (value.length <= maxEntryLength) {
        await keychain.set(name, value);
      } else {
        const list = `pieces ${randomBytes(8).toString("hex")} ${Math.ceil(value.length / maxEntryLength)}`;
        for (const [i, piece] of piecesOf(list).entries()) {
          await keychain.set(piece, value.slice(i * maxEntryLength, (i + 1) * maxEntryLength));
        }
        await keychain.set(name, list);
      }
      await drop(before);
    },
    async delete(name) {
      const pieces = piecesOf(await keychain.get(name));
      await keychain.delete(name);
      await drop(pieces);
    },
  };
}
