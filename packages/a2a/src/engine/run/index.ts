export { Pace } from "./pace.ts";
export {
  safeSentences,
  type FirstResult,
  type OwnRooms,
  type RunInit,
  type RunRooms,
  type TaskRunInit,
} from "./phase.ts";
export { Run } from "./run.ts";
export { messageOf, readResumed } from "./inputs.ts";
