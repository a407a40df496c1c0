/* Names of the conventions, inlined: `a2a.*` has no package yet, and that of the others takes 10 MB. */

/** Name of the instrumentation scope. */
export const scope = "@parley/telemetry";

/** Attributes, by the draft of semantic-conventions-genai#195 and by v0.1.0 of the GenAI conventions. Those of our own begin with `parley.`. */
export const attribute = {
  method: "a2a.method.name",
  version: "a2a.protocol.version",
  tenant: "a2a.tenant",
  messageId: "a2a.message.id",
  taskId: "a2a.task.id",
  taskState: "a2a.task.state",
  referenceTaskIds: "a2a.message.reference_task_ids",
  conversation: "gen_ai.conversation.id",
  genOperation: "gen_ai.operation.name",
  agentName: "gen_ai.agent.name",
  agentDescription: "gen_ai.agent.description",
  agentVersion: "gen_ai.agent.version",
  toolName: "gen_ai.tool.name",
  toolType: "gen_ai.tool.type",
  input: "gen_ai.input.messages",
  output: "gen_ai.output.messages",
  session: "session.id",
  user: "user.id",
  kind: "openinference.span.kind",
  error: "error.type",
  serverAddress: "server.address",
  serverPort: "server.port",
  clientAddress: "client.address",
  httpStatus: "http.response.status_code",
  relationship: "parley.relationship",
  turn: "parley.turn",
  attempt: "parley.attempt",
  webhookAttempt: "parley.webhook.attempt",
  leaseChange: "parley.lease.change",
  outcome: "parley.outcome",
  cpuMode: "cpu.mode",
  connectionState: "parley.store.connection.state",
} as const;

/** Longest attribute that a stranger chose, in characters. */
const maxText = 256;

/** A text that a stranger chose, as an attribute of a span. */
export function bounded(text: string): string {
  return text.length > maxText ? text.slice(0, maxText) : text;
}
