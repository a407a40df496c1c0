export { lazyAuthorizations } from "./lazy.ts";
export type { Authorizations, AuthorizingTurn, InTaskOptions, InTaskSettings, TakenAnswer } from "./port.ts";
export { inTaskFeature } from "./row.ts";
