export { Pace } from "./pace.ts";
export { safeSentences, type FirstResult, type RunInit, type RunRooms, type TaskRunInit } from "./phase.ts";
export { Run, type OwnRooms } from "./run.ts";
