import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHandler, defineAgent, memoryStore, type Handler } from "@parley/server";
import { times } from "../counts.ts";
import { damaged, damages } from "./damage.ts";
import { pathsOf, type Path } from "./fields.ts";
import { bodies, params, shapeOf } from "./older.ts";
import { randomFrom } from "./random.ts";

/** The seed, set in the environment to repeat a run. */
const seed = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 32));

/** A short run takes only part of the cases, chosen by the seed. */
const apart = times(3, 1);
const isTried = (at: number): boolean => at % apart === seed % apart;

interface Said {
  readonly status: number;
  readonly code: number | undefined;
  readonly message: string;
}

const refusals: ReadonlySet<number> = new Set([-32700, -32600, -32601, -32602, -32001, -32003, -32004, -32005, -32007]);

/** Message fields whose name in ProtoJSON differs from that on JSON-RPC. */
const namesOfRest: Readonly<Record<string, readonly string[]>> = {
  parts: ["content"],
  bytes: ["fileWithBytes"],
  uri: ["fileWithUri"],
  data: ["data", "data"],
};

/**
 * The field in an error message, with its JSON-RPC name. The two encodings mark the kind of a part differently, so they may name
 * different fields of a part.
 */
function fieldIn({ message }: Said): string | undefined {
  const [, field] = /^Invalid parameters: (\S+)/.exec(message) ?? [];
  return field?.replace(/^message\.(?:content|parts)(\[\d+\])?.*/, "message.parts$1");
}

describe(`invalid requests of A2A 0.3 (FUZZ_SEED=${seed})`, () => {
  const random = randomFrom(seed);
  const errors: unknown[] = [];
  let handler: Handler;
  let appended = 0;

  beforeAll(() => {
    const store = memoryStore();
    const append = store.append.bind(store);
    store.append = (items) => {
      appended += items.length;
      return append(items);
    };
    const quiet = (): void => {};
    handler = createHandler(
      defineAgent({
        name: "Parrot",
        description: "Repeats what it is told",
        version: "1.0.0",
        skills: [],
        defaultInputModes: ["*/*"],
        onMessage: (turn) => turn.reply(`You said ${turn.text.length} characters`),
      }),
      {
        store,
        publicUrl: "https://agents.example",
        dedupe: false,
        conversations: "store",
        limits: { bodyBytes: 64 * 1024 },
        logger: { debug: quiet, info: quiet, warn: quiet, error: (...line) => void errors.push(line) },
      },
    );
  });

  afterAll(() => handler.close());

  async function post(path: string, body: string): Promise<Said> {
    const headers = { "content-type": "application/json" };
    const answer = await handler.fetch(
      new Request(`https://agents.example${path}`, { method: "POST", headers, ...(body !== "" && { body }) }),
    );
    const text = await answer.text();
    const type = answer.headers.get("content-type") ?? "";
    if (type.startsWith("text/event-stream")) {
      const [, data = ""] = /^data: (.*)$/m.exec(text) ?? [];
      return { status: answer.status, ...errorIn(data) };
    }
    return { status: answer.status, ...errorIn(text) };
  }

  function errorIn(text: string): Pick<Said, "code" | "message"> {
    const value = JSON.parse(text) as { code?: number; message?: unknown; error?: { code: number; message: string } };
    // On REST, the JSON-RPC code is next to the error.
    const code = typeof value.message === "string" ? value.code : value.error?.code;
    return { code, message: value.error?.message ?? "" };
  }

  /** Damages each place of a valid request in each way. */
  async function through(name: string, sample: object, ask: (text: string) => Promise<Said>): Promise<number> {
    const problems: string[] = [];
    const shape = shapeOf(sample);
    let refused = 0;
    for (const [at, path] of [[], ...pathsOf(shape)].entries()) {
      for (const [of, damage] of damages.entries()) {
        if (!isTried(at + of)) continue;
        const text = damaged(shape, path, damage, random);
        if (text === undefined) continue;
        const before = appended;
        const said = await ask(text);
        if (said.status >= 500) problems.push(`${path.join(".")}, ${damage.name}: ${said.status} ${said.message}`);
        else if (said.code !== undefined) {
          refused += 1;
          const plain = /^(Invalid parameters: \S+|[^:]*$|Not a JSON-RPC|.*nested)/.test(said.message);
          if (!refusals.has(said.code) || !plain) {
            problems.push(`${path.join(".")}, ${damage.name}: ${said.code} ${said.message}`);
          }
          if (appended !== before) problems.push(`${path.join(".")}, ${damage.name}: refused, and stored`);
        }
      }
    }
    expect(problems.slice(0, 20), name).toEqual([]);
    expect(errors).toEqual([]);
    return refused;
  }

  test.each(Object.entries(params))(
    "of %s over JSON-RPC are rejected with a named error and not stored",
    async (method, sample) => {
      const refused = await through(method, sample, (text) =>
        post("/", `{"jsonrpc":"2.0","id":7,"method":"${method}","params":${text}}`),
      );
      expect(refused).toBeGreaterThan(0);
    },
  );

  test.each(Object.entries(bodies))(
    "of %s over REST are rejected with a named error and not stored",
    async (path, sample) => {
      const refused = await through(path, sample, (text) => post(path, text));
      expect(refused).toBeGreaterThan(0);
    },
  );

  test("with a message get the same error and field over JSON-RPC and REST", async () => {
    const jsonrpc = shapeOf(params["message/stream"] ?? {});
    const rest = shapeOf(bodies["/v1/message:stream"] ?? {});
    const places = pathsOf(rest).map(String);
    const differing: string[] = [];
    let compared = 0;
    for (const path of pathsOf(jsonrpc)) {
      const same = path.flatMap((key): Path => namesOfRest[key] ?? [key]);
      if (!places.includes(String(same))) continue;
      for (const damage of damages) {
        // On JSON-RPC, the kind of a part determines which of its fields counts.
        if (damage.name.startsWith("any ") || damage.name === "several contents") continue;
        const text = damaged(jsonrpc, path, damage, random);
        const body = damaged(rest, same, damage, random);
        if (text === undefined || body === undefined) continue;
        const one = await post("/", `{"jsonrpc":"2.0","id":7,"method":"message/stream","params":${text}}`);
        const other = await post("/v1/message:stream", body);
        compared += 1;
        if (one.code === other.code && fieldIn(one) === fieldIn(other)) continue;
        differing.push(`${path.join(".")}, ${damage.name}: ${JSON.stringify([one, other])}`);
      }
    }
    expect(differing).toEqual([]);
    expect(compared).toBeGreaterThan(1_000);
  });
});
