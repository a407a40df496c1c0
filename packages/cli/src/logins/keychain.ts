import { randomBytes } from "node:crypto";
import type { Io } from "../io.ts";

/** Keeps short texts that nobody else may read, by name. */
export interface Keychain {
  get(name: string): Promise<string | undefined>;
  set(name: string, value: string): Promise<void>;
  delete(name: string): Promise<void>;
}

/** The name of this program in the keychain. */
const service = "parley";

/** After this time a keychain that asks its user for a password has got no answer. */
const patience = 120_000;

/**
 * The keychain of the operating system: Keychain on macOS, Credential Manager on Windows, the Secret Service on Linux. `undefined`
 * where there is none, or where the environment says `PARLEY_KEYCHAIN=off`.
 */
export async function systemKeychain(env: Io["env"]): Promise<Keychain | undefined> {
  if (env["PARLEY_KEYCHAIN"] === "off") return undefined;
  // An optional dependency: it has no build for some platforms.
  const module = await import("@napi-rs/keyring").catch(() => undefined);
  if (module === undefined) return undefined;
  // By default it falls back to the keyring of the Linux kernel, which forgets at the next boot.
  const options = { linux: { store: "secret-service" as const } };
  const entry = (name: string): InstanceType<typeof module.AsyncEntry> => new module.AsyncEntry(service, name, options);
  const keychain: Keychain = {
    get: async (name) => (await entry(name).getPassword(AbortSignal.timeout(patience))) ?? undefined,
    set: (name, value) => entry(name).setPassword(value, AbortSignal.timeout(patience)),
    delete: async (name) => void (await entry(name).deleteCredential(AbortSignal.timeout(patience))),
  };
  return inPieces(keychain);
}

/** Most characters of one entry. Windows takes 2,560 bytes, in UTF-16. */
const pieceLength = 1200;

/**
 * A keychain that also takes long texts: in several entries, that the entry of the name lists. That entry is written last, so that
 * a crash leaves the old text or the new one.
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
      if (value.length <= pieceLength) {
        await keychain.set(name, value);
      } else {
        const list = `pieces ${randomBytes(8).toString("hex")} ${Math.ceil(value.length / pieceLength)}`;
        for (const [i, piece] of piecesOf(list).entries()) {
          await keychain.set(piece, value.slice(i * pieceLength, (i + 1) * pieceLength));
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
