export { defineAgent, type AgentDefinition } from "./define.ts";
