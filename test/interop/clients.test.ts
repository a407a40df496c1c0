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

/** Our server, called by the SDKs of other languages: every operation, stream and error, in the clear and over TLS. */

interface ClientProgram extends PeerProgram {
  readonly speaks: Readonly<Partial<Record<Version, readonly BindingName[]>>>;
  /** Whether it is an SDK of 0.3 alone. */
  readonly old: boolean;
  /** Whether errors have no names in it, but codes. */
  readonly codes?: boolean;
  /** Steps that it does in a way of its own. */
  readonly peculiar: readonly Peculiarity[];
}

const all: readonly BindingName[] = ["JSONRPC", "HTTP+JSON", "GRPC"];
const missing: Outcome = { error: "NotImplemented" };

/** What our agent is given is base64 twice over. */
const base64AsBytes: Peculiarity = {
  why: "it sends the base64 of a file as its bytes",
  version: "0.3",
  steps: { "bytes-of-file": { result: ["message 8"] } },
};

const go2: ClientProgram = {
  name: "Go SDK 2.3.1",
  environment: "go",
  program: "client-v2",
  // For its REST of 0.3 see below.
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
      why: "the proto of 0.3 has no list",
      version: "0.3",
      binding: "GRPC",
      steps: { tasks: { error: "MethodNotFound" } },
    },
    {
      why: "it expects the statuses of 1.0, which no server of 0.3 has",
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
      { why: "it lists none over 0.3", version: "0.3", steps: { tasks: missing } },
      {
        why: "its 0.3 has no such request",
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
      { why: "it has no such method", steps: { "push-list": "absent", "push-delete": "absent" } },
      {
        why: "it looks at the media type before the status",
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
    // It has no REST.
    speaks: { "0.3": ["JSONRPC", "GRPC"] },
    old: true,
    peculiar: [
      { ...base64AsBytes, binding: "GRPC" },
      {
        why: "it goes by the status of gRPC, which several errors have",
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

      it("takes these steps and no others", () => {
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
  it("is a dialect, with the paths of 1.0, that no other SDK of 0.3 understands", async () => {
    const said = await runClient(go2, [clear.url, "HTTP+JSON", "0.3"]);
    expect(said.get("send-and-wait")).toMatchObject({ error: "Internal", text: "Nothing is served at this path" });
  });
});
