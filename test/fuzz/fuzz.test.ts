import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { wireErrors, type FieldViolation, type WireErrorCode } from "@parley/a2a";
import type { OperationName } from "@parley/a2a/protocol";
import { codecV1 } from "../../packages/a2a/src/wire/v1/index.ts";
import { jsonrpcRequest, pathFields, restRequest, routes } from "./bindings.ts";
import { Client, type Answer, type Request } from "./client.ts";
import { damaged, damages, type Damage } from "./damage.ts";
import { pathsOf, requests, type Path, type Shape } from "./fields.ts";
import { GrpcClient, overProtobuf } from "./grpc.ts";
import { randomFrom } from "./random.ts";
import { bodyBytes, type Stats } from "./server.ts";
import { askedOnce, askedTwice } from "./around.ts";

/** Give it in the environment to see a run again. */
const seed = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
const stores = [
  { store: "memory", wanted: 100_000 },
  // What a database makes of the odd values that are rightly accepted.
  { store: "SQLite", wanted: 25_000 },
] as const;
const connections = 16;

/** A place and what is done to it. */
interface Case {
  readonly operation: OperationName;
  readonly shape: Shape;
  readonly path: Path;
  readonly damage: Damage;
}

/** What a binding made of a request: accepted, or refused by a name and for fields. */
type Outcome =
  | { readonly accepted: true }
  | {
      readonly accepted: false;
      readonly code: string;
      readonly message: string;
      readonly fields: readonly FieldViolation[];
    };

const accepted: Outcome = { accepted: true };

/** Fields that stand in the path of an operation on REST are always there, so that both bindings can be asked. */
function withPathFields(operation: OperationName, shape: Shape & { kind: "object" }): Shape {
  const needed = pathFields(routes.get(operation) ?? expect.fail(`REST has no ${operation}`));
  return {
    kind: "object",
    fields: new Map(
      [...shape.fields].map(([name, field]) => [name, needed.includes(name) ? { ...field, optional: false } : field]),
    ),
  };
}

const cases: readonly Case[] = [...requests].flatMap(([operation, request]) => {
  const shape = withPathFields(operation, request);
  return [[], ...pathsOf(shape)].flatMap((path) => damages.map((damage) => ({ operation, shape, path, damage })));
});

/** The error under one name, by the codes and details that it came with; a name that does not fit them is a failure itself. */
function refused(code: WireErrorCode, error: { message: string; fields: readonly FieldViolation[] }): Outcome {
  return { accepted: false, code, message: error.message, fields: error.fields };
}

function ofJsonRpc({ status, type, body }: Answer): Outcome {
  if (type.startsWith("text/event-stream")) return body.includes('"error"') ? expect.fail(body) : accepted;
  const answer = JSON.parse(body) as { jsonrpc: unknown; result?: unknown; error?: { code: number } };
  expect(answer.jsonrpc).toBe("2.0");
  if (answer.error === undefined) {
    expect(status).toBe(200);
    expect(answer.result).toBeDefined();
    return accepted;
  }
  const error = codecV1.jsonrpc.decodeError(answer.error);
  const row = wireErrors[error.code as WireErrorCode];
  expect({ code: answer.error.code, status }).toEqual({ code: row.jsonrpc, status: row.outside ? row.http : 200 });
  return refused(error.code as WireErrorCode, error);
}

function ofRest({ status, type, body }: Answer): Outcome {
  if (status === 200) return accepted;
  expect(type).toContain("application/json");
  const answer = JSON.parse(body) as { error: { code: number; status: string } };
  const error = codecV1.rest.decodeError(status, answer);
  const row = wireErrors[error.code as WireErrorCode];
  expect({ code: answer.error.code, status, name: answer.error.status }).toEqual({
    code: row.http,
    status: row.http,
    name: row.status,
  });
  return refused(error.code as WireErrorCode, error);
}

/** How gRPC refuses what a caller did wrong; everything else would be our own fault. */
const refusals = [3, 5, 9, 12];

describe.each(stores)(`bad requests to a server with its tasks in $store (FUZZ_SEED=${seed})`, ({ store, wanted }) => {
  const random = randomFrom(seed);
  let child: ChildProcess;
  let client: Client;
  let grpc: GrpcClient;
  let folder: string;
  let said = "";
  let taskId = "";
  /** What went wrong, each kind once. */
  const problems = new Set<string>();

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "parley-fuzz-"));
    const path = store === "SQLite" ? [join(folder, "fuzz.db")] : [];
    child = fork(fileURLToPath(new URL("server.ts", import.meta.url)), path, {
      execArgv: ["--import", "tsx", "--conditions", "@parley/source", "--expose-gc"],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const [{ port }] = (await Promise.race([
      once(child, "message"),
      once(child, "exit").then(() => expect.fail(`the server ended: ${said}`)),
    ])) as [{ port: number }];
    client = new Client(port, connections);
    grpc = new GrpcClient(port);
  });

  afterAll(async () => {
    client.close();
    grpc.close();
    const ended = once(child, "exit");
    child.kill();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });

  async function stats(): Promise<Stats> {
    const answer = once(child, "message");
    child.send("stats");
    return ((await answer) as [Stats])[0];
  }

  async function call(method: OperationName, params: object): Promise<Record<string, unknown>> {
    const { body } = await client.request(jsonrpcRequest(method, JSON.stringify(params)));
    const answer = JSON.parse(body) as { result?: Record<string, unknown> };
    return answer.result ?? expect.fail(body);
  }

  /** Sends, and reads what came back; what must never come back is noted under `name`. */
  async function ask(name: string, request: Request, read: (answer: Answer) => Outcome): Promise<Outcome | undefined> {
    try {
      const answer = await client.request(request);
      if (answer.status >= 500) problems.add(`${name}: ${answer.status} ${answer.body.slice(0, 200)}`);
      const outcome = read(answer);
      if (!outcome.accepted && outcome.code === "InvalidParams" && outcome.fields.length === 0) {
        problems.add(`${name}: InvalidParams names no field: ${outcome.message}`);
      }
      return outcome;
    } catch (error) {
      problems.add(`${name}: ${String(error)}`);
      return undefined;
    }
  }

  /** Asks both bindings the same, one after the other; whether both refused. */
  async function askBoth(name: string, jsonrpc: Request, rest: Request | undefined): Promise<boolean> {
    const one = await ask(`${name} on JSON-RPC`, jsonrpc, ofJsonRpc);
    if (rest === undefined) return one?.accepted === false;
    const other = await ask(`${name} on REST`, rest, ofRest);
    if (one === undefined || other === undefined) return false;
    const texts = [one, other].map((outcome) => JSON.stringify(outcome));
    if (texts[0] !== texts[1]) problems.add(`${name}:\n  JSON-RPC ${texts[0]}\n  REST     ${texts[1]}`);
    return !one.accepted && !other.accepted;
  }

  async function askGrpc(name: string, operation: OperationName, frames: Uint8Array): Promise<Outcome | undefined> {
    try {
      const { error, status } = await grpc.call(operation, frames);
      if (error === undefined) return accepted;
      if (!refusals.includes(status)) problems.add(`${name}: status ${status}, ${error.message}`);
      return refused(error.code as WireErrorCode, error);
    } catch (error) {
      problems.add(`${name}: ${String(error)}`);
      return undefined;
    }
  }

  /** Asks gRPC, and JSON-RPC for what protobuf leaves of the same request. */
  async function askAsProtobuf(name: string, operation: OperationName, text: string): Promise<void> {
    const request = overProtobuf(operation, text);
    if (request === undefined) return;
    const jsonrpc = await ask(`${name} as protobuf on JSON-RPC`, jsonrpcRequest(operation, request.text), ofJsonRpc);
    const outcome = await askGrpc(`${name} on gRPC`, operation, request.frame);
    const texts = [jsonrpc, outcome].map((each) => JSON.stringify(each));
    if (texts[0] !== texts[1]) problems.add(`${name}:\n  JSON-RPC ${texts[0]}\n  gRPC     ${texts[1]}`);
  }

  /** Whether all bindings refuse it; `undefined` where nothing can be asked. */
  async function askCase({ operation, shape, path, damage }: Case): Promise<boolean | undefined> {
    const text = damaged(shape, path, damage, random);
    if (text === undefined) return undefined;
    const place = path.reduce<string>(
      (before, key) => (typeof key === "number" ? `${before}[${key}]` : `${before}.${key}`),
      "",
    );
    // A message of its own for each case: what was accepted once is known the next time, and the store stays as it is.
    const own = text
      .replaceAll('"some-messageId"', JSON.stringify(`${operation}${place} ${damage.name}`))
      .replaceAll('"some-id"', JSON.stringify(taskId))
      .replaceAll('"some-taskId"', JSON.stringify(taskId));
    const name = `${operation}${place}, ${damage.name}`;
    const isRefused = await askBoth(name, jsonrpcRequest(operation, own), restRequest(operation, own));
    await askAsProtobuf(name, operation, own);
    return isRefused;
  }

  /** Runs through `list` on all connections at once. */
  async function through<T>(list: Iterable<T>, each: (item: T) => Promise<unknown> | undefined): Promise<void> {
    const items = list[Symbol.iterator]();
    await Promise.all(
      Array.from({ length: connections }, async () => {
        for (let next = items.next(); next.done !== true; next = items.next()) await each(next.value);
      }),
    );
  }

  test("around a request: on each binding refused, where both can be asked alike", async () => {
    const before = await stats();
    await through(askedTwice(bodyBytes), ({ name, jsonrpc, rest }) => askBoth(name, jsonrpc, rest));
    await through(askedOnce(bodyBytes), async ({ name, request, read }) => {
      const outcome = await ask(name, request, read === "jsonrpc" ? ofJsonRpc : ofRest);
      if (outcome?.accepted === true) problems.add(`${name}: accepted`);
    });
    expect([...problems].slice(0, 20)).toEqual([]);
    const after = await stats();
    expect({ appended: after.appended, errors: after.errors }).toEqual({ appended: before.appended, errors: [] });
  });

  test("frames of gRPC with bytes changed, cut or added are refused or taken, and nothing else", async () => {
    const good = [...requests].flatMap(([operation, shape]) => {
      const text = damaged(shape, [], { name: "", text: (place) => place.good }, random);
      const request = text === undefined ? undefined : overProtobuf(operation, text);
      return request === undefined ? [] : [{ operation, frame: request.frame }];
    });
    const before = await stats();
    await through(
      Array.from({ length: 5000 }, (_, at) => at),
      async (at) => {
        const { operation, frame } = good[at % good.length] as (typeof good)[number];
        const bytes = Uint8Array.from(frame);
        const place = Math.floor(random() * bytes.length);
        const kind = Math.floor(random() * 3);
        const changed =
          kind === 0
            ? bytes.with(place, Math.floor(random() * 256))
            : kind === 1
              ? bytes.subarray(0, place)
              : Buffer.concat([bytes, bytes.subarray(place)]);
        await askGrpc(`${operation} as ${Buffer.from(changed).toString("hex")}`, operation, changed);
      },
    );
    expect([...problems].slice(0, 20)).toEqual([]);
    expect((await stats()).errors).toEqual(before.errors);
  });

  test(`${wanted} of them: the same error and field on every binding, nothing stored, memory as it was`, async () => {
    const { task } = (await call("SendMessage", {
      message: { messageId: "work", role: "ROLE_USER", parts: [{ text: "work" }] },
    })) as { task: { id: string } };
    taskId = task.id;
    const before = await call("ListTasks", {});

    let early = 0;
    const refusedCases: Case[] = [];
    for (let round = 0; client.sent < wanted; round += 1) {
      await through(cases, async (each) => {
        const isRefused = await askCase(each);
        if (round === 0 && isRefused === true) refusedCases.push(each);
        if (early === 0 && client.sent >= 10_000) {
          early = 1;
          early = (await stats()).resident;
        }
      });
      if (problems.size > 0) break;
    }
    expect([...problems].slice(0, 20)).toEqual([]);
    const late = await stats();
    expect(late.errors).toEqual([]);
    expect(late.resident / early).toBeLessThanOrEqual(1.1);

    expect(refusedCases.length).toBeGreaterThan(cases.length / 3);
    await through(
      refusedCases.filter(({ damage }) => !damage.name.startsWith("any ")),
      askCase,
    );
    expect((await stats()).appended).toBe(late.appended);
    expect(await call("ListTasks", {})).toEqual(before);
    expect(child.exitCode).toBe(null);
    expect(said).toBe("");
  });
});
