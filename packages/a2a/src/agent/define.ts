import { A2AError } from "../model/index.ts";
import type { Agent, AgentBehaviour, AgentDescription, AgentOutput, Turn } from "../protocol/index.ts";
import { AuthorTurn } from "./turn.ts";

/** What `defineAgent` takes: the card's words, how to run it, and the function itself (D11). */
export interface AgentDefinition extends AgentDescription, AgentBehaviour {
  /**
   * Called with each message. An async generator yields events and falls off the end when the task is complete;
   * returning `turn.reply(…)` before any event answers with a Message and makes no task.
   */
  onMessage(turn: Turn): AgentOutput;
}

/**
 * Defines an agent.
 *
 * @throws A2AError `InvalidParams` when something that a card must say (A2A 1.0 §4.4.1) is missing.
 */
export function defineAgent(definition: AgentDefinition): Agent {
  const { onMessage, ...rest } = definition;
  const fields = [
    ...(["name", "description", "version"] as const)
      .filter((field) => typeof rest[field] !== "string" || rest[field] === "")
      .map((field) => ({ field, description: "is required" })),
    ...(Array.isArray(rest.skills) ? [] : [{ field: "skills", description: "is required; it may be empty" }]),
    ...(typeof onMessage === "function" ? [] : [{ field: "onMessage", description: "must be a function" }]),
  ];
  if (fields.length > 0) {
    const list = fields.map((violation) => `${violation.field} ${violation.description}`).join(", ");
    throw new A2AError("InvalidParams", `This is no agent: ${list}`, { fields });
  }
  return Object.freeze({
    ...rest,
    execute: (turn) => onMessage.call(definition, new AuthorTurn(turn)),
  } satisfies Agent);
}
