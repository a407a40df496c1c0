import { beforeAll, describe, expect, test } from "vitest";
import { codecV1, type Codec, type OperationName } from "@parley/a2a/protocol";
import { codecV03 } from "@parley/a2a/internal/wires";
import { jsonrpcRequest } from "./bindings.ts";
import { callSaying, damagedCalls, goodCalls, type Call, type DamagedCall } from "./calls.ts";
import { damaged, damages } from "./damage.ts";
import { pathsOf, requests } from "./fields.ts";
import { expectNoGrowth, fuzzed, seed, through } from "./fuzzed.ts";
import { askedByCall, leaving } from "./grpc-around.ts";
import { bodies, calls, shapeOf } from "./older.ts";
import { ofGrpc, ofJsonRpc, ofRest, type Outcome } from "./outcome.ts";
import { randomFrom } from "./random.ts";
import { bodyBytes, type Stats } from "./server.ts";
import { times } from "../counts.ts";

/** A short run damages the bytes of one valid request in eight, chosen by the seed. */
const apart = times(8, 1);

describe(`invalid calls of gRPC (FUZZ_SEED=${seed})`, () => {
  const random = randomFrom(seed);
  const server = fuzzed("memory");
  const { problems } = server;
  let taskId = "";

  beforeAll(async () => {
    const message = { messageId: "work", role: "ROLE_USER", parts: [{ text: "work" }] };
    const { body } = await server.client.request(jsonrpcRequest("SendMessage", JSON.stringify({ message })));
    taskId = (JSON.parse(body) as { result: { task: { id: string } } }).result.task.id;
  });

  const askCall = (name: string, { request }: Call, codec: Codec = codecV1): Promise<Outcome | undefined> =>
    server.noting(`${name} on gRPC`, async () => ofGrpc(await server.grpc.raw({ ...request, codec }), codec));

  /** Records where two bindings differ. Returns whether both rejected. On 0.3 gRPC, the message also has the name of the error, so it is ignored. */
  function compare(name: string, grpc: Outcome | undefined, other: Outcome | undefined): boolean {
    const texts = [grpc, other].map((outcome) => JSON.stringify({ ...outcome, message: undefined }));
    if (texts[0] !== texts[1]) problems.add(`${name}:\n  gRPC ${texts[0]}\n  else ${texts[1]}`);
    return grpc?.accepted === false;
  }

  /** Sends the bytes over gRPC, and their decoded JSON over JSON-RPC. Returns whether they were rejected. */
  async function askAlike({ name, operation, call }: DamagedCall): Promise<boolean> {
    const outcome = await askCall(name, call);
    const { said } = call;
    if (said === undefined && outcome?.accepted === true) problems.add(`${name}: accepted, and says nothing`);
    // A request that is too large only as JSON is rejected only on JSON-RPC.
    if (said === undefined || said.length > bodyBytes / 2) return outcome?.accepted === false;
    const other = await server.ask(`${name} on JSON-RPC`, jsonrpcRequest(operation, said), ofJsonRpc);
    return compare(`${name}, ${said.slice(0, 300)}`, outcome, other);
  }

  test("with errors outside of their messages get the status of gRPC or A2A for it", async () => {
    const before = await server.stats();
    await through(askedByCall(bodyBytes), async ({ name, request, status, http = 200 }) => {
      const ending = await server.grpc.raw(request).catch(String);
      const said = typeof ending === "string" ? undefined : ending;
      const isRight = said?.http === http && (http !== 200 || status.includes(said.status ?? -1));
      if (!isRight) problems.add(`${name}: ${JSON.stringify(ending)}`);
    });
    await through(leaving(), async (request) => {
      const { status } = await server.grpc.raw(request);
      if (status !== undefined) problems.add(`left ${request.path}: ${status}`);
    });
    expect((await server.sound()).appended).toBe(before.appended);
  });

  test("with damaged bytes get the same error and field as on JSON-RPC, are not stored and leave no memory behind", async () => {
    const fill = (text: string): string =>
      text
        .replaceAll('"some-messageId"', '"bytes"')
        .replaceAll('"some-id"', JSON.stringify(taskId))
        .replaceAll('"some-taskId"', JSON.stringify(taskId));
    const goods = [...goodCalls(requests, fill)].filter((_, at) => at % apart === seed % apart);
    const refused: DamagedCall[] = [];
    let asked = 0;
    let early: Stats | undefined;
    for (let round = 0; round < 2; round += 1) {
      await through(damagedCalls("1.0", goods, random), async (each) => {
        asked += 1;
        if ((await askAlike(each)) && round === 0) refused.push(each);
      });
      if (round === 0) early = await server.sound();
    }
    const late = await server.sound();
    expectNoGrowth(early, late);
    expect(asked).toBeGreaterThan(4_000 / apart);
    await through(refused, ({ name, call }) => askCall(name, call));
    expect((await server.sound()).appended).toBe(late.appended);
  });

  test("with damaged bytes of 0.3 are accepted, or rejected and not stored", async () => {
    const goods = Object.entries(calls).map(([operation, value]) => {
      return { name: operation, operation: operation as OperationName, text: JSON.stringify(value) };
    });
    const refused: DamagedCall[] = [];
    for (let round = 0; round < times(1, 10); round += 1) {
      await through(damagedCalls("0.3", goods, random), async (each) => {
        if ((await askCall(each.name, each.call, codecV03))?.accepted === false) refused.push(each);
      });
    }
    expect(refused.length).toBeGreaterThan(times(100, 1_000));
    const { appended } = await server.sound();
    await through(refused, ({ name, call }) => askCall(name, call, codecV03));
    expect((await server.sound()).appended).toBe(appended);
  });

  test.each([
    ["SendMessage", "/v1/message:send"],
    ["SendStreamingMessage", "/v1/message:stream"],
  ] as const)(
    "%s of 0.3: the same error and field as on REST, nothing stored",
    async (operation: OperationName, path) => {
      const shape = shapeOf(bodies[path] ?? expect.fail(path));
      const refused: (() => Promise<unknown>)[] = [];
      let asked = 0;
      for (const place of [[], ...pathsOf(shape)]) {
        await through(damages, async (damage) => {
          const text = damaged(shape, place, damage, random);
          const name = `0.3 ${operation}.${place.join(".")}, ${damage.name}`;
          const call = callSaying("0.3", operation, text?.replaceAll('"m"', JSON.stringify(name)) ?? "");
          if (call?.said === undefined) return;
          const headers = { "content-type": "application/json", "a2a-version": "0.3" };
          const rest = { method: "POST", path, headers, body: call.said };
          const outcome = await askCall(name, call, codecV03);
          const other = await server.ask(`${name} on REST`, rest, (answer) => ofRest(answer, codecV03));
          asked += 1;
          if (compare(`${name}, ${call.said.slice(0, 300)}`, outcome, other)) {
            refused.push(() => askCall(name, call, codecV03));
          }
        });
      }
      expect(asked).toBeGreaterThan(300);
      expect(refused.length).toBeGreaterThan(50);
      const { appended } = await server.sound();
      await through(refused, (ask) => ask());
      expect((await server.sound()).appended).toBe(appended);
    },
  );
});
