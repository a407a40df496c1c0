import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHandler, defineAgent, memoryStore, type Handler } from "@parley/a2a";
import { damaged, damages } from "./damage.ts";
import { pathsOf } from "./fields.ts";
import { bodies, params, shapeOf } from "./older.ts";
import { randomFrom } from "./random.ts";

/** Give it in the environment to see a run again. */
const seed = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 32));

interface Said {
  readonly status: number;
  readonly code: number | undefined;
  readonly message: string;
}

const refusals: ReadonlySet<number> = new Set([-32700, -32600, -32601, -32602, -32001, -32003, -32004, -32005, -32007]);

describe(`bad requests of A2A 0.3 (FUZZ_SEED=${seed})`, () => {
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
    // Of REST the code of JSON-RPC stands beside the error.
    const code = typeof value.message === "string" ? value.code : value.error?.code;
    return { code, message: value.error?.message ?? "" };
  }

  /** Damages each place of a good request in each way. */
  async function through(name: string, sample: object, ask: (text: string) => Promise<Said>): Promise<number> {
    const problems: string[] = [];
    const shape = shapeOf(sample);
    let refused = 0;
    for (const path of [[], ...pathsOf(shape)]) {
      for (const damage of damages) {
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

  test.each(Object.entries(params))("%s over JSON-RPC: refused by a name, nothing stored", async (method, sample) => {
    const refused = await through(method, sample, (text) =>
      post("/", `{"jsonrpc":"2.0","id":7,"method":"${method}","params":${text}}`),
    );
    expect(refused).toBeGreaterThan(0);
  });

  test.each(Object.entries(bodies))("%s over REST: refused by a name, nothing stored", async (path, sample) => {
    const refused = await through(path, sample, (text) => post(path, text));
    expect(refused).toBeGreaterThan(0);
  });
});
