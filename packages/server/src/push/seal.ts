import { createSeal } from "../seal/index.ts";
import type { TaskKey } from "../store/index.ts";
import type { PushKeyring } from "./keys.ts";
import type { OpenSecrets, PushSecrets } from "./port.ts";

/** Seals the secrets of configs, and opens them. */
export interface Sealer {
  /** Seals with the first key. */
  seal(secrets: PushSecrets, task: TaskKey, configId: string): Promise<string>;
  /** Opens with the key that sealed. */
  readonly open: OpenSecrets;
}

/** What is sealed is bound to its agent, owner, task and config: a sealed secret that is copied into another row does not open. */
export function createSealer(keyring: PushKeyring): Sealer {
  const { seal, open } = createSeal(keyring);
  return {
    seal: (secrets, task, configId) => seal(secrets, boundTo(task, configId)),
    open: async (text, task, configId) => {
      try {
        return (await open(text, boundTo(task, configId))) as PushSecrets;
      } catch (cause) {
        throw new Error(`The secrets of this webhook: ${(cause as Error).message}`, { cause });
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

function boundTo({ agent, owner, taskId }: TaskKey, configId: string): readonly string[] {
  return [agent, owner, taskId, configId];
}
