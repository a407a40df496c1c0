/**
 * A2A agents for front ends of AG-UI, such as CopilotKit.
 * @packageDocumentation
 */
export { A2AAgent, type A2AAgentConfig } from "./agent.ts";
