import type { Bytes } from "../base/index.ts";
import { fromBase64, toBase64 } from "../model/index.ts";
import type { TaskKey } from "../store/index.ts";
import type { PushKeyring } from "./keys.ts";
import type { OpenSecrets, PushSecrets } from "./port.ts";

/* What configs keep secret is stored sealed with AES-256-GCM, so that a copy of the database does not have it. */

/** Seals the secrets of configs, and opens them. */
export interface Sealer {
  /** Seals with the first key. */
  seal(secrets: PushSecrets, task: TaskKey, configId: string): Promise<string>;
  /** Opens with the key that sealed. */
  readonly open: OpenSecrets;
}

const ivBytes = 12;

/**
 * What is sealed is bound to its agent, owner, task and config: a sealed secret that is copied into another row does not open.
 * The text is the id of the key, the initialization vector and the sealed bytes, with a dot between them.
 */
export function createSealer(keyring: PushKeyring): Sealer {
  return {
    async seal(secrets, task, configId) {
      const [{ id, seal }] = await keyring();
      const iv = crypto.getRandomValues(new Uint8Array(ivBytes));
      const plain = new TextEncoder().encode(JSON.stringify(secrets));
      const sealed = await crypto.subtle.encrypt(algorithm(iv, task, configId), seal, plain);
      return [id, toBase64(iv), toBase64(sealed)].join(".");
    },
    async open(text, task, configId) {
      const [id, iv = "", sealed = ""] = text.split(".");
      const key = (await keyring()).find((each) => each.id === id);
      if (key === undefined)
        throw new Error("The secrets of this webhook are sealed with a key that this server does not have");
      try {
        const plain = await crypto.subtle.decrypt(
          algorithm(fromBase64(iv), task, configId),
          key.seal,
          fromBase64(sealed),
        );
        return JSON.parse(new TextDecoder().decode(plain)) as PushSecrets;
      } catch (cause) {
        throw new Error("The secrets of this webhook do not open: they were changed, or belong to another one", {
          cause,
        });
      }
    },
  };
}

/** Opens for one config, and remembers the result: its events follow each other, and opening costs a tenth of a delivery. */
export function rememberLast(open: OpenSecrets): OpenSecrets {
  let last: { readonly sealed: string; readonly secrets: PushSecrets } | undefined;
  return async (sealed, task, configId) => {
    if (last?.sealed !== sealed) last = { sealed, secrets: await open(sealed, task, configId) };
    return last.secrets;
  };
}

interface Algorithm {
  readonly name: "AES-GCM";
  readonly iv: Bytes;
  readonly additionalData: Bytes;
}

function algorithm(iv: Bytes, { agent, owner, taskId }: TaskKey, configId: string): Algorithm {
  const bound = JSON.stringify([agent, owner, taskId, configId]);
  return { name: "AES-GCM", iv, additionalData: new TextEncoder().encode(bound) };
}
