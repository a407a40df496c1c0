import { A2AError, connect, type Client } from "@parley/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ourSteps } from "./ours.ts";
import { describePeer, startServer, type PeerProgram, type RunningServer } from "./peer.ts";
import { expectedSteps, type BindingName, type Outcome, type Peculiarity, type Version } from "./steps.ts";

/** Our client calls servers on the SDKs of other languages: every operation, stream and error. */

interface ServerProgram extends PeerProgram {
  /** The name on its card. */
  readonly agent: string;
  readonly speaks: Readonly<Partial<Record<Version, readonly BindingName[]>>>;
  readonly peculiar: readonly Peculiarity[];
  /** Maximum silence of its streams, in milliseconds, if it leaves them open. Default: no limit. */
  readonly patience?: number;
}

const all: readonly BindingName[] = ["JSONRPC", "HTTP+JSON", "GRPC"];

const anyMedia: Peculiarity = {
  why: "it does not check media types",
  steps: { "media-type": { result: "task COMPLETED" } },
};
const bytesAsText: Peculiarity = {
  why: "it decodes the bytes of a file as base64",
  version: "0.3",
  steps: { parts: { error: "InternalError" }, "bytes-of-file": { error: "InternalError" } },
};
const brokenOff: Peculiarity = {
  why: "it disconnects if a stream starts with an error",
  version: "0.3",
  binding: "HTTP+JSON",
  steps: { "subscribe-unknown": { error: "ConnectionLost" }, "stream-to-unknown": { error: "ConnectionLost" } },
};
const questionLast: Peculiarity = {
  why: "it adds a question to the history after its answer",
  steps: {
    question: {
      result: {
        states: ["INPUT_REQUIRED", "COMPLETED"],
        same: true,
        history: ["ask", "echo it", "more"],
        short: ["more"],
      },
    },
  },
};
const internal: Outcome = { error: "InternalError" };
const unsupported: Outcome = { error: "UnsupportedOperation" };

const go2: ServerProgram = {
  name: "Go SDK 2.3.1",
  agent: "Go 2",
  environment: "go",
  program: "server-v2",
  // Its REST for 0.3 is tested below.
  speaks: { "1.0": all, "0.3": ["JSONRPC", "GRPC"] },
  peculiar: [anyMedia, questionLast],
};

const servers: readonly ServerProgram[] = [
  {
    name: "Python SDK 1.3.0",
    agent: "Python 1",
    environment: "python1",
    program: "server_v1.py",
    speaks: { "1.0": all, "0.3": all },
    peculiar: [
      anyMedia,
      { ...bytesAsText, binding: "HTTP+JSON" },
      { ...bytesAsText, binding: "GRPC" },
      brokenOff,
      {
        why: "its 0.3 REST lacks this route",
        version: "0.3",
        binding: "HTTP+JSON",
        steps: { "push-delete": { error: "InvalidResponse" } },
      },
    ],
  },
  {
    name: "Python SDK 0.3.26",
    agent: "Python 0.3",
    environment: "python03",
    program: "server_v03.py",
    speaks: { "0.3": all },
    peculiar: [
      anyMedia,
      { ...bytesAsText, binding: "HTTP+JSON" },
      { ...bytesAsText, binding: "GRPC" },
      brokenOff,
      {
        why: "a cancel leaves streams open, and a subscription starts with the next event",
        steps: {
          cancel: { result: { state: "CANCELED", rest: ["silence"] } },
          subscribe: { result: { first: "nothing", rest: ["silence"], other: ["silence"] } },
        },
      },
      {
        why: "it uses another code",
        binding: "JSONRPC",
        steps: {
          "push-create": internal,
          "push-get": unsupported,
          "push-list": unsupported,
          "push-delete": unsupported,
        },
      },
      {
        why: "it uses another status",
        binding: "HTTP+JSON",
        steps: { "push-get": unsupported, "push-list": internal, "push-delete": { error: "MethodNotAllowed" } },
      },
      {
        why: "it uses another status",
        binding: "GRPC",
        steps: {
          "push-create": internal,
          "push-get": unsupported,
          "push-list": unsupported,
          "push-delete": unsupported,
        },
      },
      {
        why: "its gRPC has only one card",
        binding: "GRPC",
        steps: { "extended-card": { result: "Does what it is told" } },
      },
    ],
    patience: 1_000,
  },
  go2,
  {
    name: "Go SDK 0.3.15",
    agent: "Go 0.3",
    environment: "go",
    program: "server-v03",
    // It does not support REST.
    speaks: { "0.3": ["JSONRPC", "GRPC"] },
    peculiar: [
      anyMedia,
      questionLast,
      {
        why: "it decodes the bytes of a file as base64",
        binding: "GRPC",
        steps: { "bytes-of-file": { result: ["message illegal base64 data at input byte 0"] } },
      },
      {
        why: "a subscription starts with the next event, which our client replaces by the task",
        steps: {
          subscribe: { result: { first: "nothing", rest: ["task CANCELED"], other: ["status CANCELED"] } },
        },
      },
    ],
    patience: 1_000,
  },
];

/** The result of a step, as the peers report it. */
async function outcomeOf(run: () => Promise<unknown> | undefined): Promise<Outcome & { readonly text?: string }> {
  try {
    return { result: await run() };
  } catch (error) {
    if (error instanceof A2AError) return { error: error.code, text: error.message };
    throw error;
  }
}

for (const program of servers) {
  describePeer(program, () => {
    let server: RunningServer;
    beforeAll(async () => {
      server = await startServer(program);
    });
    afterAll(() => server.stop());
    const wires = Object.entries(program.speaks).flatMap(([version, bindings]) =>
      bindings.map((binding) => [version as Version, binding] as const),
    );
    describe.each(wires)("over A2A %s, %s", (version, binding) => {
      let client: Client;
      beforeAll(async () => {
        client = await connect(server.url, { version, binding, reconnect: false });
      });

      const ours: readonly Peculiarity[] = [
        { why: "its own name", steps: { card: { result: { name: program.agent, skills: ["echo"] } } } },
        {
          why: "our client returns its last state",
          steps: { "subscribe-to-finished": { result: ["task COMPLETED"] } },
        },
      ];
      const expected = expectedSteps(version, binding, { old: false, error: String }, [...ours, ...program.peculiar]);
      it.each(expected)("$name", async ({ step, outcome }) => {
        const { text, ...said } = await outcomeOf(() => ourSteps[step]?.(client, program.patience));
        expect(said, text).toEqual(outcome);
      });
    });
  });
}

describePeer({ ...go2, name: "Go SDK 2.3.1 over REST of 0.3" }, () => {
  it("is a dialect with 1.0 paths, which no other 0.3 SDK understands", async () => {
    const server = await startServer(go2);
    try {
      const client = await connect(server.url, { version: "0.3", binding: "HTTP+JSON" });
      await expect(client.sendMessage("echo")).rejects.toThrow(/does not answer in the protocol: HTTP 404/);
    } finally {
      await server.stop();
    }
  });
});
