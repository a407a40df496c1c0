import { A2AError, connect, type Client } from "@parley/a2a";
import type { AgentInterface } from "@parley/a2a/model";

/** The events and results that a client got from the counting agent. */
export interface Report {
  readonly binding: string;
  readonly version: string;
  readonly reply: string;
  readonly sent: string;
  readonly streamed: string;
  readonly ended: string;
  readonly error: string;
}

/** Calls the counting agent over every interface of its card: a message, a task, a stream, and an error. */
export async function check(url: string): Promise<readonly Report[]> {
  const { card } = await connect(url);
  const reports: Report[] = [];
  for (const face of card.supportedInterfaces) {
    // The client on every runtime speaks HTTP. gRPC needs the client for Node.
    if (face.protocolBinding === "GRPC") continue;
    reports.push(await checkOne(face, await connect({ ...card, supportedInterfaces: [face] })));
  }
  return reports;
}

/** The result of `check` if everything works. */
export const expected: readonly Report[] = ["1.0", "0.3"].flatMap((version) =>
  ["JSONRPC", "HTTP+JSON"].map((binding) => ({
    binding,
    version,
    reply: "Which number?",
    sent: "0123",
    streamed: "0,1,2,3,4,5",
    ended: "TASK_STATE_COMPLETED",
    error: "TaskNotFound",
  })),
);

async function checkOne(face: AgentInterface, client: Client): Promise<Report> {
  const { message } = await client.sendMessage("hello");
  const { task } = await client.sendMessage("3");
  const chunks: string[] = [];
  let ended = "";
  for await (const event of client.sendStreamingMessage("5")) {
    const part = event.artifactUpdate?.artifact.parts[0];
    if (part?.text !== undefined) chunks.push(part.text);
    ended = event.statusUpdate?.status.state ?? ended;
  }
  const error: unknown = await client.getTask("unknown").catch((thrown: unknown) => thrown);
  return {
    binding: face.protocolBinding,
    version: face.protocolVersion,
    reply: message?.parts[0]?.text ?? "",
    sent: task?.artifacts?.[0]?.parts.map((part) => part.text).join("") ?? "",
    streamed: chunks.join(),
    ended,
    error: error instanceof A2AError ? error.code : String(error),
  };
}
