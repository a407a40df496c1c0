import { describe, expect, test } from "vitest";
import type { OperationName } from "@parley/a2a/protocol";
import { askedOnce, askedTwice } from "./around.ts";
import { jsonrpcRequest, pathFields, restRequest, routes } from "./bindings.ts";
import type { Request } from "./client.ts";
import { damaged, damages, type Damage } from "./damage.ts";
import { pathsOf, requests, type Path, type Shape } from "./fields.ts";
import { expectNoGrowth, fuzzed, seed, through } from "./fuzzed.ts";
import { overProtobuf } from "./grpc.ts";
import { ofGrpc, ofJsonRpc, ofRest, type Outcome } from "./outcome.ts";
import { times } from "../counts.ts";
import { randomFrom } from "./random.ts";
import { bodyBytes, type Stats } from "./server.ts";

const stores = [
  { store: "memory", wanted: times(4_000, 100_000) },
  // A database must store valid values even if they are unusual.
  { store: "SQLite", wanted: times(3_000, 25_000) },
] as const;

/** The number of requests before memory is measured, because the first requests allocate memory that the server keeps. */
const warm = times(2_000, 10_000);

/** A place and its damage. */
interface Case {
  readonly operation: OperationName;
  readonly shape: Shape;
  readonly path: Path;
  readonly damage: Damage;
}

/** Makes the fields in a REST route's path required, so that both bindings can be called. */
function withPathFields(operation: OperationName, shape: Shape & { kind: "object" }): Shape {
  const needed = pathFields(routes.get(operation) ?? expect.fail(`REST has no ${operation}`));
  return {
    kind: "object",
    fields: new Map(
      [...shape.fields].map(([name, field]) => [name, needed.includes(name) ? { ...field, optional: false } : field]),
    ),
  };
}

const all: readonly Case[] = [...requests].flatMap(([operation, request]) => {
  const shape = withPathFields(operation, request);
  return [[], ...pathsOf(shape)].flatMap((path) => damages.map((damage) => ({ operation, shape, path, damage })));
});

/** A short run takes only part of the cases, chosen by the seed. */
const apart = times(12, 1);
const cases = all.filter((_, at) => at % apart === seed % apart);

describe.each(stores)(
  `invalid requests to a server with its tasks in $store (FUZZ_SEED=${seed})`,
  ({ store, wanted }) => {
    const random = randomFrom(seed);
    const server = fuzzed(store);
    const { problems } = server;
    let taskId = "";

    async function call(method: OperationName, params: object): Promise<Record<string, unknown>> {
      const { body } = await server.client.request(jsonrpcRequest(method, JSON.stringify(params)));
      const answer = JSON.parse(body) as { result?: Record<string, unknown> };
      return answer.result ?? expect.fail(body);
    }

    /** Sends the same request to both bindings in sequence. Returns whether both rejected it. */
    async function askBoth(name: string, jsonrpc: Request, rest: Request | undefined): Promise<boolean> {
      const one = await server.ask(`${name} on JSON-RPC`, jsonrpc, ofJsonRpc);
      if (rest === undefined) return one?.accepted === false;
      const other = await server.ask(`${name} on REST`, rest, ofRest);
      if (one === undefined || other === undefined) return false;
      const texts = [one, other].map((outcome) => JSON.stringify(outcome));
      if (texts[0] !== texts[1]) problems.add(`${name}:\n  JSON-RPC ${texts[0]}\n  REST     ${texts[1]}`);
      return !one.accepted && !other.accepted;
    }

    function askGrpc(name: string, operation: OperationName, frames: Uint8Array): Promise<Outcome | undefined> {
      return server.noting(name, async () => ofGrpc(await server.grpc.call(operation, frames)));
    }

    /** Sends the request over gRPC, and the part of it that protobuf can express over JSON-RPC. */
    async function askAsProtobuf(name: string, operation: OperationName, text: string): Promise<void> {
      const request = overProtobuf(operation, text);
      if (request === undefined) return;
      const jsonrpc = await server.ask(
        `${name} as protobuf on JSON-RPC`,
        jsonrpcRequest(operation, request.text),
        ofJsonRpc,
      );
      const outcome = await askGrpc(`${name} on gRPC`, operation, request.frame);
      const texts = [jsonrpc, outcome].map((each) => JSON.stringify(each));
      if (texts[0] !== texts[1]) problems.add(`${name}:\n  JSON-RPC ${texts[0]}\n  gRPC     ${texts[1]}`);
    }

    /** Whether all bindings reject it. `undefined` if the damage does not apply. */
    async function askCase({ operation, shape, path, damage }: Case): Promise<boolean | undefined> {
      const text = damaged(shape, path, damage, random);
      if (text === undefined) return undefined;
      const place = path.reduce<string>(
        (before, key) => (typeof key === "number" ? `${before}[${key}]` : `${before}.${key}`),
        "",
      );
      // Each case has its own messageId, so a repeated case is a retry, for which nothing is stored.
      const own = text
        .replaceAll('"some-messageId"', JSON.stringify(`${operation}${place} ${damage.name}`))
        .replaceAll('"some-id"', JSON.stringify(taskId))
        .replaceAll('"some-taskId"', JSON.stringify(taskId));
      const name = `${operation}${place}, ${damage.name}`;
      const isRefused = await askBoth(name, jsonrpcRequest(operation, own), restRequest(operation, own));
      await askAsProtobuf(name, operation, own);
      return isRefused;
    }

    test("with errors outside of their fields are rejected on each binding", async () => {
      const before = await server.stats();
      await through(askedTwice(bodyBytes), ({ name, jsonrpc, rest }) => askBoth(name, jsonrpc, rest));
      await through(askedOnce(bodyBytes), async ({ name, request, read }) => {
        const outcome = await server.ask(name, request, read === "jsonrpc" ? ofJsonRpc : ofRest);
        if (outcome?.accepted === true) problems.add(`${name}: accepted`);
      });
      expect((await server.sound()).appended).toBe(before.appended);
    });

    test(`with damaged fields get the same error and field on each binding, are not stored and leave no memory behind: ${wanted}`, async () => {
      const { task } = (await call("SendMessage", {
        message: { messageId: "work", role: "ROLE_USER", parts: [{ text: "work" }] },
      })) as { task: { id: string } };
      taskId = task.id;
      const before = await call("ListTasks", {});

      let early: Promise<Stats> | undefined;
      const refusedCases: Case[] = [];
      for (let round = 0; server.client.sent < wanted; round += 1) {
        await through(cases, async (each) => {
          const isRefused = await askCase(each);
          if (round === 0 && isRefused === true) refusedCases.push(each);
          if (server.client.sent >= warm) await (early ??= server.stats());
        });
        if (problems.size > 0) break;
      }
      const late = await server.sound();
      expectNoGrowth(await early, late);

      expect(refusedCases.length).toBeGreaterThan(cases.length / 3);
      await through(
        refusedCases.filter(({ damage }) => !damage.name.startsWith("any ")),
        askCase,
      );
      expect((await server.sound()).appended).toBe(late.appended);
      expect(await call("ListTasks", {})).toEqual(before);
    });
  },
);
