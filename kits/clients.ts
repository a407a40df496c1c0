import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { AgentCapabilities } from "@parley/a2a/model";
import { A2AError, connect, type AgentCard, type Client } from "@parley/a2a";
import { codecV1 } from "@parley/a2a/protocol";
import { parse } from "yaml";
import type { ActsReport, ActsTest } from "./report.ts";

/** A step of a client test (ACTS §10): a response, and the value that a client must read from it. */
interface ClientStep {
  readonly client_response: { readonly operation: string; readonly wire_payload: object };
  readonly expect_parsed: unknown;
}

interface ClientTest extends Pick<ActsTest, "id" | "level"> {
  readonly name: string;
  readonly tags?: readonly string[];
  readonly steps: readonly ClientStep[];
}

/** Runs the client tests of an ACTS file: our client reads the responses over JSON-RPC. */
export async function testClient(file: string): Promise<{ readonly reports: readonly ActsReport[] }> {
  const { suites } = parse(file) as { readonly suites: readonly { readonly tests: readonly ClientTest[] }[] };
  const tests: ActsTest[] = [];
  for (const test of suites.flatMap((suite) => suite.tests)) tests.push(await run(test));
  return { reports: [{ transport: "jsonrpc", suites: [{ tests }] }] };
}

async function run({ id, level, tags = [], steps }: ClientTest): Promise<ActsTest> {
  for (const { client_response: response, expect_parsed: expected } of steps) {
    // The steps of a test with this tag check less than its description says, so passing them proves nothing.
    const problem = tags.includes("runner-special")
      ? await special[id]?.(response.wire_payload)
      : mismatch(await parsed(response), expected, "");
    if (problem !== undefined) return { id, level, result: "fail", failure: { message: problem } };
  }
  if (tags.includes("runner-special") && special[id] === undefined)
    return { id, level, result: "skip", skip_reason: "describes its check only in prose" };
  return { id, level, result: "pass" };
}

/** The runner's own checks for tests that leave the check to it, by test id. */
const special: Readonly<Record<string, (payload: object) => Promise<string | undefined>>> = {
  /** The client reads the card before it calls an optional operation. */
  "CLIENT-CAP-001": (payload) =>
    against({}, (payload as Pick<AgentCard, "capabilities">).capabilities, async (client, calls) => {
      const refused = [
        await codeOf(client.sendStreamingMessage("Hello")[Symbol.asyncIterator]().next()),
        await codeOf(client.listTaskPushNotificationConfigs({ taskId: "task" })),
      ];
      if (calls() > 0) return "the client calls an operation that the card does not declare";
      return mismatch(refused, ["UnsupportedOperation", "PushNotificationNotSupported"], "");
    }),
};

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "none";
  } catch (error) {
    return error instanceof A2AError ? error.code : String(error);
  }
}

/** The value that our client reads from a response. */
function parsed({ operation, wire_payload: payload }: ClientStep["client_response"]): Promise<unknown> {
  return against(payload, {}, async (client) => {
    try {
      return await call(client, operation);
    } catch (error) {
      if (!(error instanceof A2AError)) throw error;
      return { error: codecV1.bindings.JSONRPC.encodeError(error) };
    }
  });
}

/** Connects our client to a server that gives the same response to every call, and counts the calls. */
async function against<Result>(
  payload: object,
  capabilities: AgentCapabilities,
  use: (client: Client, calls: () => number) => Promise<Result>,
): Promise<Result> {
  let calls = 0;
  const server = createServer((request, response) => {
    calls += 1;
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { id } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly id: unknown };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...payload, id }));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = await connect({
      name: "Answers from a file",
      description: "Says what a file says.",
      version: "1.0.0",
      supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
      capabilities,
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
      skills: [],
    });
    return await use(client, () => calls);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function call(client: Client, operation: string): Promise<unknown> {
  switch (operation) {
    case "send_message":
      return client.sendMessage("Hello");
    case "get_task":
      return client.getTask("task");
    default:
      throw new Error(`the tests of clients call ${operation}, which is not supported here`);
  }
}

/** The first mismatch, as a sentence. Supports only the operators of these tests; any other key is a member's name. */
function mismatch(value: unknown, expected: unknown, at: string): string | undefined {
  const wrong = `${at}: ${JSON.stringify(value)} is not ${JSON.stringify(expected)}`;
  if (typeof expected !== "object" || expected === null) return value === expected ? undefined : wrong;
  for (const [key, wanted] of Object.entries(expected) as [string, unknown][]) {
    if (key === "count_gte") {
      if (!Array.isArray(value) || value.length < Number(wanted)) return wrong;
    } else if (key === "contains") {
      if (typeof value !== "string" || !value.includes(String(wanted))) return wrong;
    } else {
      const member: unknown = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
      const problem = mismatch(member, wanted, `${at}.${key}`);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}
