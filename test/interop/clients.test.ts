import { memoryStore } from "@parley/a2a";
import { serve, type Server } from "@parley/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agent, anyone } from "./agent.ts";
import { describePeer, runClient, type PeerProgram, type Said } from "./peer.ts";
import { stepsOf, wireError, type BindingName, type Outcome, type Version } from "./steps.ts";

/** Our server, called by the SDKs of other languages: every operation, stream and error. */

interface ClientProgram extends PeerProgram {
  readonly speaks: Readonly<Partial<Record<Version, readonly BindingName[]>>>;
  /** Whether it is an SDK of 0.3 alone. */
  readonly old: boolean;
  /** Whether errors have no names in it, but codes. */
  readonly codes?: boolean;
  /** Steps that it does in a way of its own. */
  readonly peculiar: readonly Peculiarity[];
}

interface Peculiarity {
  readonly why: string;
  readonly version?: Version;
  readonly binding?: BindingName;
  /** What comes of which steps; `absent`: it has no such step. */
  readonly steps: Readonly<Record<string, Outcome | "absent">>;
}

const all: readonly BindingName[] = ["JSONRPC", "HTTP+JSON", "GRPC"];
const nothing: Outcome = { result: [] };
const missing: Outcome = { error: "NotImplemented" };

const clients: readonly ClientProgram[] = [
  {
    name: "Python SDK 1.3.0",
    environment: "python1",
    program: "client_v1.py",
    speaks: { "1.0": all, "0.3": all },
    old: false,
    peculiar: [
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
      { why: "it has no such method", steps: { "push-list": "absent", "push-delete": "absent" } },
      {
        why: "it looks at the media type before the status",
        binding: "HTTP+JSON",
        steps: { "subscribe-unknown": { error: "400" } },
      },
    ],
  },
  {
    name: "Go SDK 2.3.1",
    environment: "go",
    program: "client-v2",
    // Its REST of 0.3 is a dialect of its own, with the paths of 1.0, that no other SDK understands.
    speaks: { "1.0": all, "0.3": ["JSONRPC", "GRPC"] },
    old: false,
    peculiar: [
      {
        why: "it takes an error that comes as JSON for a stream without events",
        version: "1.0",
        binding: "JSONRPC",
        steps: { "subscribe-unknown": nothing, "stream-to-unknown": nothing, "subscribe-to-finished": nothing },
      },
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
  },
  {
    name: "Go SDK 0.3.15",
    environment: "go",
    program: "client-v03",
    // It has no REST.
    speaks: { "0.3": ["JSONRPC", "GRPC"] },
    old: true,
    peculiar: [
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

let server: Server;
beforeAll(async () => {
  const mount = {
    agent,
    extendedCard: (card: Server["agents"][number]["card"]) => ({ ...card, description: "For anyone" }),
  };
  server = await serve([mount], { port: 0, signals: false, store: memoryStore(), authenticator: anyone });
});
afterAll(() => server.close({ grace: 0 }));

function expectations(client: ClientProgram, version: Version, binding: BindingName): [string, Outcome | "absent"][] {
  const error = client.codes === true ? (name: Parameters<typeof wireError>[0]) => wireError(name, binding) : String;
  const steps: Record<string, Outcome | "absent"> = { ...stepsOf(version, { old: client.old, error }) };
  const names = new Map(Object.keys(steps).map((step) => [step, step]));
  for (const { why, steps: own, ...where } of client.peculiar) {
    if ((where.version ?? version) !== version || (where.binding ?? binding) !== binding) continue;
    for (const [step, outcome] of Object.entries(own)) {
      steps[step] = outcome;
      names.set(step, `${step} (${why})`);
    }
  }
  return Object.entries(steps).map(([step, outcome]) => [names.get(step) ?? step, outcome]);
}

for (const client of clients) {
  describePeer(client, () => {
    const wires = Object.entries(client.speaks).flatMap(([version, bindings]) =>
      bindings.map((binding) => [version as Version, binding] as const),
    );
    describe.each(wires)("over A2A %s, %s", (version, binding) => {
      const expected = expectations(client, version, binding);
      let steps: ReadonlyMap<string, Said>;
      beforeAll(async () => {
        steps = await runClient(client, [server.url, binding, version]);
      });

      it("takes these steps and no others", () => {
        const known = expected.filter(([, outcome]) => outcome !== "absent").map(([name]) => name.split(" ")[0]);
        expect(new Set(steps.keys())).toEqual(new Set(known));
      });

      it.each(expected)("%s", (name, outcome) => {
        const said = steps.get(name.split(" ")[0] ?? name);
        if (outcome === "absent") return expect(said).toBeUndefined();
        const { text, ...rest } = said ?? { text: "no such step" };
        return expect(rest, text).toEqual({ step: name.split(" ")[0], ...outcome });
      });
    });
  });
}
