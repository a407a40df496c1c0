import type { ConfigsHost, PushConfigs } from "./configs.ts";
import type { PushSettings } from "./settings.ts";

/** Loads the configs of a server when it is called first, and then returns the same. */
export type LazyConfigs = () => Promise<PushConfigs>;

/** Their code, with that of signatures, is not loaded by servers whose callers have no webhooks. */
export function lazyConfigs(settings: PushSettings, host: ConfigsHost): LazyConfigs {
  let loading: Promise<PushConfigs> | undefined;
  return () => (loading ??= import("./configs.ts").then(({ PushConfigs: Configs }) => new Configs(settings, host)));
}
