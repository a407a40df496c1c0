import { silentLogger } from "@parley/a2a/internal/base/index";
import type { Dialer } from "@parley/a2a/internal/net/index";
import { createSealer, pushKeyring } from "../../src/push/keys.ts";
import type { PushOptions, PushSettings } from "../../src/push/index.ts";
import { parkedFeature, pushFeature, type StoredConfig } from "../../src/push/stored.ts";
import { pushSettingsOf } from "../../src/server/features.ts";
import type { FeatureRow, Store, TaskKey } from "../../src/store/index.ts";

/** 32 bytes in base64. */
export const testKey = btoa("k".repeat(32));

/** Returns the settings of a server on the internet, where names resolve to a public address. */
export function settingsOf(options: PushOptions = {}): PushSettings {
  const publicUrl = "https://agents.example.com";
  const all = { keys: [testKey], dialer: dialerTo("93.184.215.14"), ...options };
  return pushSettingsOf(all, publicUrl, silentLogger) as PushSettings;
}

/** Creates a dialer that resolves all names to one address, and answers requests with `answer`. */
export function dialerTo(address: string, answer: (url: URL, body: string) => Response = () => new Response()): Dialer {
  return {
    resolve: () => Promise.resolve([{ address, family: 4 }]),
    fetch: (url, _, { body = "" }) => Promise.resolve(answer(url, String(body))),
  };
}

/** Returns a task's webhook rows. */
export async function rowsOf(store: Store, task: TaskKey, feature = pushFeature): Promise<readonly FeatureRow[]> {
  return store.features(task, task.taskId, feature);
}

export async function storedOf(store: Store, task: TaskKey): Promise<readonly StoredConfig[]> {
  return (await rowsOf(store, task)).map(({ value }) => JSON.parse(value) as StoredConfig);
}

/** Decrypts the sealed members of a config. */
export function opened(sealed: string, task: TaskKey, id: string, { keys }: PushSettings): Promise<unknown> {
  return createSealer(pushKeyring(keys)).open(sealed, task, id);
}

/** Parks a config, like the outbox does. */
export async function park(store: Store, task: TaskKey, id: string): Promise<void> {
  const row = (await rowsOf(store, task)).find(({ key }) => key === id);
  const effect = { effect: "feature", key: id } as const;
  const outcomes = await store.append([
    {
      task,
      records: [],
      effects: [
        { ...effect, op: "delete", feature: pushFeature },
        { ...effect, op: "set", feature: parkedFeature, value: row?.value ?? "", due: 1 },
      ],
    },
  ]);
  if (outcomes[0]?.ok !== true) throw new Error("The config was not parked");
}
