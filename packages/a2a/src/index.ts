/** Serving agents: the model, the authoring of agents, stores, authentication, and the handler that puts them together. */

export * from "./model/index.ts";
export { defineAgent, type AgentDefinition } from "./agent/index.ts";
export { bearer, type Authenticator, type BearerOptions, type VerifyToken } from "./auth/index.ts";
export {
  randomIds,
  silentLogger,
  systemClock,
  type Clock,
  type Ids,
  type Logger,
  type LogFields,
} from "./base/index.ts";
