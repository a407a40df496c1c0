export type { Queue } from "./queue.ts";
export type { QueuePlaces } from "./queue-places.ts";
export type { Runs } from "./runs.ts";
export type { Standing } from "./standing.ts";
export { createLiveness, createSupervisor, type Liveness, type Supervisor } from "./supervisor.ts";
