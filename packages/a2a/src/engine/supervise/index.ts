export type { Runs } from "./runs.ts";
export { startSupervisor } from "./supervisor.ts";
