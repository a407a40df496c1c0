import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore, serve, type AgentCard, type Server } from "@parley/node";
import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agent, anyone } from "./agent.ts";
import { describePeer, runClient, type PeerProgram, type Said } from "./peer.ts";
import {
  expectedSteps,
  wireError,
  type BindingName,
  type ErrorName,
  type Outcome,
  type Peculiarity,
  type Version,
} from "./steps.ts";

/** The SDKs of other languages call our server: every operation, stream and error, in plain text and over TLS. */

interface ClientProgram extends PeerProgram {
  readonly speaks: Readonly<Partial<Record<Version, readonly BindingName[]>>>;
  /** Whether it supports only 0.3. */
  readonly old: boolean;
  /** Whether it reports errors by code instead of name. */
  readonly codes?: boolean;
  /** Steps with results of its own. */
  readonly peculiar: readonly Peculiarity[];
}

const all: readonly BindingName[] = ["JSONRPC", "HTTP+JSON", "GRPC"];
const missing: Outcome = { error: "NotImplemented" };

/** Our agent receives doubly encoded base64. */
const base64AsBytes: Peculiarity = {
  why: "it sends the base64 of a file as its bytes",
  version: "0.3",
  steps: { "bytes-of-file": { result: ["message 8"] } },
};

const go2: ClientProgram = {
  name: "Go SDK 2.3.1",
  environment: "go",
  program: "client-v2",
  // Its REST for 0.3 is tested below.
  speaks: { "1.0": all, "0.3": ["JSONRPC", "GRPC"] },
  old: false,
  peculiar: [
    {
      why: "it lists none over 0.3",
      version: "0.3",
      binding: "JSONRPC",
      steps: { tasks: { error: "UnsupportedOperation" } },
    },
    {
      why: "the 0.3 proto has no list operation",
      version: "0.3",
      binding: "GRPC",
      steps: { tasks: { error: "MethodNotFound" } },
    },
    {
      why: "it expects 1.0 status codes, which 0.3 servers do not send",
      version: "0.3",
      binding: "GRPC",
      steps: {
        "send-to-finished": { error: "Internal" },
        "push-create": { error: "Internal" },
        "push-get": { error: "Internal" },
        "push-list": { error: "Internal" },
        "push-delete": { error: "Internal" },
      },
    },
  ],
};

const clients: readonly ClientProgram[] = [
  {
    name: "Python SDK 1.3.0",
    environment: "python1",
    program: "client_v1.py",
    speaks: { "1.0": all, "0.3": all },
    old: false,
    peculiar: [
      { ...base64AsBytes, binding: "HTTP+JSON" },
      { ...base64AsBytes, binding: "GRPC" },
      { why: "it does not list tasks over 0.3", version: "0.3", steps: { tasks: missing } },
      {
        why: "its 0.3 support lacks this request",
        version: "0.3",
        binding: "HTTP+JSON",
        steps: { "push-list": missing, "push-delete": missing },
      },
    ],
  },
  {
    name: "Python SDK 0.3.26",
    environment: "python03",
    program: "client_v03.py",
    speaks: { "0.3": all },
    old: true,
    codes: true,
    peculiar: [
      { ...base64AsBytes, binding: "HTTP+JSON" },
      { ...base64AsBytes, binding: "GRPC" },
      { why: "it lacks this method", steps: { "push-list": "absent", "push-delete": "absent" } },
      {
        why: "it checks the media type before the status",
        binding: "HTTP+JSON",
        steps: { "subscribe-unknown": { error: "400" } },
      },
    ],
  },
  go2,
  {
    name: "Go SDK 0.3.15",
    environment: "go",
    program: "client-v03",
    // It does not support REST.
    speaks: { "0.3": ["JSONRPC", "GRPC"] },
    old: true,
    peculiar: [
      { ...base64AsBytes, binding: "GRPC" },
      {
        why: "it uses the gRPC status, which several errors share",
        binding: "GRPC",
        steps: {
          "media-type": { error: "InvalidParams" },
          "push-create": { error: "UnsupportedOperation" },
          "push-get": { error: "UnsupportedOperation" },
          "push-list": { error: "UnsupportedOperation" },
          "push-delete": { error: "UnsupportedOperation" },
        },
      },
    ],
  },
];

const extendedCard = (card: AgentCard): AgentCard => ({ ...card, description: "For anyone" });

let folder: string;
let certificate: string;
let clear: Server;
let secure: Server;
beforeAll(async () => {
  const options = { port: 0, grpc: true, signals: false, logger: false, authenticator: anyone } as const;
  const { cert, private: key } = await generate([{ name: "commonName", value: "127.0.0.1" }], {
    algorithm: "sha256",
    keyType: "ec",
    extensions: [{ name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] }],
  });
  folder = await mkdtemp(join(tmpdir(), "parley-interop-"));
  certificate = join(folder, "certificate.pem");
  await writeFile(certificate, cert);
  clear = await serve([{ agent, extendedCard }], { ...options, store: memoryStore() });
  secure = await serve([{ agent, extendedCard }], { ...options, store: memoryStore(), tls: { cert, key } });
});
afterAll(async () => {
  await Promise.all([clear.close({ grace: 0 }), secure.close({ grace: 0 })]);
  await rm(folder, { recursive: true });
});

for (const client of clients) {
  describePeer(client, () => {
    const wires = Object.entries(client.speaks).flatMap(([version, bindings]) =>
      bindings.flatMap((binding) => [
        [version as Version, binding, "in the clear"] as const,
        [version as Version, binding, "over TLS"] as const,
      ]),
    );
    describe.each(wires)("by A2A %s, %s, %s", (version, binding, line) => {
      const error = client.codes === true ? (name: ErrorName) => wireError(name, binding) : String;
      const expected = expectedSteps(version, binding, { old: client.old, error }, client.peculiar);
      let said: ReadonlyMap<string, Said>;
      beforeAll(async () => {
        said = await (line === "over TLS"
          ? runClient(client, [secure.url, binding, version], { certificate })
          : runClient(client, [clear.url, binding, version]));
      });

      it("reports exactly the expected steps", () => {
        const steps = expected.filter(({ outcome }) => outcome !== "absent").map(({ step }) => step);
        expect(new Set(said.keys())).toEqual(new Set(steps));
      });

      it.each(expected)("$name", ({ step, outcome }) => {
        const { text, ...rest } = said.get(step) ?? {};
        expect(rest, text).toEqual(outcome === "absent" ? {} : { step, ...outcome });
      });
    });
  });
}

describePeer({ ...go2, name: "Go SDK 2.3.1 over REST of 0.3" }, () => {
  it("is a dialect with 1.0 paths, which no other 0.3 SDK understands", async () => {
    const said = await runClient(go2, [clear.url, "HTTP+JSON", "0.3"]);
    expect(said.get("send-and-wait")).toMatchObject({ error: "Internal", text: "Nothing is served at this path" });
  });
});
