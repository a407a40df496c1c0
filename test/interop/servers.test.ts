import { A2AError, connect, type Client } from "@parley/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ourSteps } from "./ours.ts";
import { describePeer, startServer, type PeerProgram, type RunningServer } from "./peer.ts";
import { expectedSteps, type BindingName, type Outcome, type Peculiarity, type Version } from "./steps.ts";

/** Our client, calling servers on the SDKs of other languages: every operation, stream and error. */

interface ServerProgram extends PeerProgram {
  /** What its card says. */
  readonly agent: string;
  readonly speaks: Readonly<Partial<Record<Version, readonly BindingName[]>>>;
  readonly peculiar: readonly Peculiarity[];
  /** How long to wait while its streams are silent, in milliseconds, if it leaves them open. Default: for ever. */
  readonly patience?: number;
}

const all: readonly BindingName[] = ["JSONRPC", "HTTP+JSON", "GRPC"];

const anyMedia: Peculiarity = {
  why: "it does not look at media types",
  steps: { "media-type": { result: "task COMPLETED" } },
};
const bytesAsText: Peculiarity = {
  why: "it takes the bytes of a file for base64",
  version: "0.3",
  steps: { parts: { error: "InternalError" }, "bytes-of-file": { error: "InternalError" } },
};
const brokenOff: Peculiarity = {
  why: "it breaks off where a stream begins with an error",
  version: "0.3",
  binding: "HTTP+JSON",
  steps: { "subscribe-unknown": { error: "ConnectionLost" }, "stream-to-unknown": { error: "ConnectionLost" } },
};
const questionLast: Peculiarity = {
  why: "it puts a question into the history after its answer",
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
  // For its REST of 0.3 see below.
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
        why: "its REST of 0.3 has no such route",
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
        why: "a cancel leaves streams open, and a subscription begins with the next event",
        steps: {
          cancel: { result: { state: "CANCELED", rest: ["silence"] } },
          subscribe: { result: { first: "nothing", rest: ["silence"], other: ["silence"] } },
        },
      },
      {
        why: "it says it with another code",
        binding: "JSONRPC",
        steps: {
          "push-create": internal,
          "push-get": unsupported,
          "push-list": unsupported,
          "push-delete": unsupported,
        },
      },
      {
        why: "it says it with another status",
        binding: "HTTP+JSON",
        steps: { "push-get": unsupported, "push-list": internal, "push-delete": { error: "MethodNotAllowed" } },
      },
      {
        why: "it says it with another status",
        binding: "GRPC",
        steps: {
          "push-create": internal,
          "push-get": unsupported,
          "push-list": unsupported,
          "push-delete": unsupported,
        },
      },
      {
        why: "its gRPC has one card alone",
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
    // It has no REST.
    speaks: { "0.3": ["JSONRPC", "GRPC"] },
    peculiar: [
      anyMedia,
      questionLast,
      {
        why: "it takes the bytes of a file for base64",
        binding: "GRPC",
        steps: { "bytes-of-file": { result: ["message illegal base64 data at input byte 0"] } },
      },
      {
        why: "a subscription begins with the next event, in whose place our client puts the task",
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
          why: "our client gives its last state",
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
  it("is a dialect, with the paths of 1.0, that no other SDK of 0.3 understands", async () => {
    const server = await startServer(go2);
    try {
      const client = await connect(server.url, { version: "0.3", binding: "HTTP+JSON" });
      await expect(client.sendMessage("echo")).rejects.toThrow(/does not answer in the protocol: HTTP 404/);
    } finally {
      await server.stop();
    }
  });
});
