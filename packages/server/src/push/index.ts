import type { ConfigsHost, PushConfigs } from "./configs.ts";
import type { PushSettings } from "./port.ts";

export type { Outbox, OutboxHost, PushEntry, PushOperator, PushOptions, PushProblem, RefusedDelivery } from "./port.ts";
export type { AcceptedConfig } from "./accept.ts";
export type { PushConfigs } from "./configs.ts";
export type { PushSettings } from "./port.ts";

/** Loads the configs of a server on the first call, and returns the same object later. */
export type LazyConfigs = () => Promise<PushConfigs>;

/** Loads the code for webhooks, which includes signatures, only when a caller first uses a webhook. */
export function lazyConfigs(settings: PushSettings, host: ConfigsHost): LazyConfigs {
  let loading: Promise<PushConfigs> | undefined;
  return () => (loading ??= import("./configs.ts").then(({ PushConfigs: Configs }) => new Configs(settings, host)));
}
