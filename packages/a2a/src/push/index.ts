export type { OutboxHost, PushEntry, PushOperator, PushOptions, PushProblem, RefusedDelivery } from "./port.ts";
export type { PushSettings } from "./settings.ts";
