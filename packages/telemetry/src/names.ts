/* Names of the semantic conventions, inlined: `a2a.*` has no package yet, and the package of the others takes 10 MB. */

/** Name of the instrumentation scope. */
export const scope = "@parley/telemetry";

/** Attributes of the draft semantic-conventions-genai#195 and of v0.1.0 of the GenAI conventions. Custom ones begin with `parley.`. */
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

/** Maximum length of an untrusted attribute, in characters. */
const maxText = 256;

/** Truncates untrusted text for an attribute. */
export function bounded(text: string): string {
  return text.length > maxText ? text.slice(0, maxText) : text;
}
