/**
 * A2A agents for AG-UI front ends, such as CopilotKit.
 * @packageDocumentation
 */
export { A2AAgent, type A2AAgentConfig } from "./agent.ts";
