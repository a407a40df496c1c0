export type { Outbox, OutboxHost, PushEntry, PushOperator, PushOptions, PushProblem, RefusedDelivery } from "./port.ts";
export type { AcceptedConfig } from "./accept.ts";
export type { PushConfigs } from "./configs.ts";
export type { LazyConfigs } from "./lazy-configs.ts";
export type { PushSettings } from "./settings.ts";
export { pushOperator, type PushOperatorOptions } from "./operator.ts";
