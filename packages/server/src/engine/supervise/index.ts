export type { Queue } from "./queue.ts";
export type { Runs } from "./runs.ts";
export { createSupervisor } from "./supervisor.ts";
