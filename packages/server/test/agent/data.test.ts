import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { defineAgent, type AgentDefinition } from "../../src/agent/index.ts";
import { dataOf, type Client } from "@parley/a2a/internal/client/index";
import {
  data,
  message,
  type A2AError,
  type Content,
  type Part,
  type StandardSchema,
  type Task,
} from "@parley/a2a/internal/model/index";
import { MessageRefused } from "@parley/a2a/internal/protocol/index";
import { testAgent, type TestAgent } from "@parley/testing";

type Definition = Partial<AgentDefinition> & Pick<AgentDefinition, "onMessage">;

const card = { name: "Test", description: "Is tested.", version: "1.0.0", skills: [], defaultInputModes: ["*"] };

async function given(definition: Definition): Promise<TestAgent> {
  const agent = await testAgent(defineAgent({ ...card, ...definition }));
  onTestFinished(() => agent.close());
  return agent;
}

interface Expense {
  readonly amount: number;
  readonly purpose: string;
  readonly day?: string | undefined;
}

/** The same schema in three libraries, and another schema that validates asynchronously. */
const libraries: Readonly<Record<string, StandardSchema<Expense>>> = {
  zod: z.object({ amount: z.number().positive(), purpose: z.string().max(10), day: z.string().optional() }),
  valibot: v.object({
    amount: v.pipe(v.number(), v.minValue(0.01)),
    purpose: v.pipe(v.string(), v.maxLength(10)),
    day: v.optional(v.string()),
  }),
  arktype: type({ amount: "number > 0", purpose: "string <= 10", "day?": "string" }),
  "zod, asynchronously": z.object({
    amount: z.number().refine((amount) => Promise.resolve(amount > 0)),
    purpose: z.string().max(10),
    day: z.string().optional(),
  }),
};

/** Defines an agent that repeats its input. */
function reader(schema: StandardSchema<Expense>, ask?: string): Definition {
  return {
    async onMessage(turn) {
      const { amount, purpose } = await turn.data(schema, ask === undefined ? undefined : { ask });
      return turn.reply(`${amount} for ${purpose}`);
    },
  };
}

async function refusal(client: Client, parts: readonly Part[]): Promise<A2AError> {
  return client.sendMessage(parts).then(
    () => expect.unreachable("it was taken"),
    (error: A2AError) => error,
  );
}

const secret = "secret-of-ada-0123456789";

describe.each(Object.entries(libraries))("turn.data() with %s", (_, schema) => {
  it("returns the data of the message, with its type", async () => {
    const { client } = await given(reader(schema));
    const { message: reply } = await client.sendMessage([
      { text: "Here" },
      { data: { amount: 5, purpose: "a train" } },
    ]);
    expect(reply?.parts).toEqual([{ text: "5 for a train" }]);
  });

  it("rejects other data as InvalidParams before there is a task, with the path of each field (A2A 1.0 §3.3.2, §11.6)", async () => {
    const { client } = await given(reader(schema));
    const error = await refusal(client, [{ text: "Here" }, { data: { amount: "5", purpose: 7 } }]);
    expect(error).toMatchObject({ code: "InvalidParams" });
    expect(error.fields.map(({ field }) => field)).toEqual([
      "message.parts[1].data.amount",
      "message.parts[1].data.purpose",
    ]);
    expect(error.fields.every(({ description }) => /^does not fit: .*(number|string)/.test(description))).toBe(true);
    expect((await client.listTasks()).tasks).toEqual([]);
  });

  it("does not repeat text of the data, in any encoding", async () => {
    const { client } = await given(reader(schema));
    for (const value of [secret, `"${secret}"`, `${secret}" x "${secret}`, `\\"${secret}\n`]) {
      for (const sent of [
        value,
        [value],
        { amount: value, purpose: value },
        { amount: 1, purpose: { [value]: [value] } },
      ]) {
        const error = await refusal(client, [{ data: sent }]);
        expect(error.code).toBe("InvalidParams");
        expect(JSON.stringify([error.message, error.fields])).not.toContain(secret);
      }
    }
  });
});

describe("turn.data()", () => {
  const expense = libraries["zod"]!;

  it("keeps words of the schema intact even if a text of the data is a single letter", async () => {
    const { client } = await given(reader(expense));
    const error = await refusal(client, [{ data: { amount: "x", purpose: "a" } }]);
    expect(error.fields[0]?.description).toMatch(/expected number, received string/);
  });

  it("takes the first value that matches, of several parts", async () => {
    const { client } = await given(reader(expense));
    const parts = [{ data: 1 }, { data: { amount: 1, purpose: "a" } }, { data: { amount: 2, purpose: "b" } }];
    expect((await client.sendMessage(parts)).message?.parts).toEqual([{ text: "1 for a" }]);
  });

  it("accepts texts and files only if their media type is JSON", async () => {
    const { client } = await given(reader(expense));
    const json = JSON.stringify({ amount: 3, purpose: "tea" });
    for (const mediaType of ["application/json", "application/JSON; charset=utf-8", "application/vnd.form+json"]) {
      for (const part of [
        { text: json, mediaType },
        { raw: btoa(json), mediaType },
      ])
        expect((await client.sendMessage([part])).message?.parts).toEqual([{ text: "3 for tea" }]);
    }
    for (const part of [
      { text: json },
      { text: json, mediaType: "text/plain" },
      { raw: btoa(json), mediaType: "a/jsonx" },
    ]) {
      const error = await refusal(client, [part]);
      expect(error.fields).toEqual([{ field: "message.parts", description: "has no data part" }]);
    }
    for (const [part, field] of [
      [{ text: "{", mediaType: "application/json" }, "message.parts[0].text"],
      [{ raw: btoa("\u00ff{}"), mediaType: "application/json" }, "message.parts[0].raw"],
    ] as const) {
      const error = await refusal(client, [part]);
      expect(error.fields).toEqual([{ field, description: "is not JSON" }]);
    }
  });

  it("reports at most 32 problems, each short and safe to show", async () => {
    const text = `${"x".repeat(5000)}\u001b[2J\u202e`;
    const many = Array.from({ length: 100 }, () => ({ message: text, path: Array.from({ length: 100 }, () => text) }));
    const schema: StandardSchema<Expense> = {
      "~standard": { version: 1, vendor: "test", validate: () => ({ issues: many }) },
    };
    const { client } = await given(reader(schema));
    const error = await refusal(client, [{ data: 1 }, { data: 2 }]);
    expect(error.fields).toHaveLength(32);
    for (const { field, description } of error.fields) {
      expect(field.length).toBeLessThan(200);
      expect(description.length).toBeLessThan(300);
    }
    // eslint-disable-next-line no-control-regex
    expect(JSON.stringify(error.fields)).not.toMatch(/[\u0000-\u001f\u202e]/);
    for (const sign of ["\u001b", "\u202e"]) expect(error.message).not.toContain(sign);
  });

  it("names members by their path: lists by number, and no name with unsafe content", async () => {
    const rows = z.object({ rows: z.array(z.object({ "a b": z.number(), n: z.number() })) });
    const { client } = await given({ onMessage: async (turn) => turn.reply(data(await turn.data(rows))) });
    const error = await refusal(client, [
      {
        data: {
          rows: [
            { "a b": 1, n: 1 },
            { "a b": "1", n: "1" },
          ],
        },
      },
    ]);
    expect(error.fields.map(({ field }) => field)).toEqual([
      'message.parts[0].data.rows[1]["…"]',
      "message.parts[0].data.rows[1].n",
    ]);
  });

  it("asks again within a task, and reads the answer from the task's next message (A2A 1.0 §3.4.3)", async () => {
    const { client } = await given({
      async *onMessage(turn) {
        if (turn.number === 1) {
          yield turn.inputRequired("What did you pay?");
          return;
        }
        const { amount } = await turn.data(expense);
        yield turn.completed(`${amount} back`);
      },
    });
    const conversation = client.conversation();
    await conversation.send("I want money back");
    const { task } = await conversation.send([{ data: { amount: -1, purpose: "tea" } }]);
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(task?.status.message?.parts[0]?.text).toMatch(
      /cannot be used:\n- message\.parts\[0\]\.data\.amount does not fit: /,
    );
    const { task: done } = await conversation.send([{ data: { amount: 4, purpose: "tea" } }]);
    expect(done?.id).toBe(task?.id);
    expect(done?.status).toMatchObject({ state: "TASK_STATE_COMPLETED", message: { parts: [{ text: "4 back" }] } });
  });

  it("asks in the agent's own words with `ask`, even without a task: a form in one line", async () => {
    const { client } = await given(reader(expense, "Please send amount and purpose"));
    const conversation = client.conversation();
    const { task } = await conversation.send("I want money back");
    expect(task?.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { parts: [{ text: "Please send amount and purpose" }, { mediaType: "application/schema+json" }] },
    });
    const { task: again } = await conversation.send([{ data: { amount: 4 } }]);
    expect(again?.status.message?.parts.map(({ text }) => text)).toEqual([
      "Please send amount and purpose",
      undefined,
      expect.stringContaining("message.parts[0].data.purpose does not fit"),
    ]);
    const { task: done } = await conversation.send([{ data: { amount: 4, purpose: "tea" } }]);
    expect(done?.status).toMatchObject({ state: "TASK_STATE_COMPLETED", message: { parts: [{ text: "4 for tea" }] } });
  });

  it("attaches the JSON Schema of the form to the question, from each library that provides it (Standard JSON Schema)", async () => {
    const form = {
      type: "object",
      properties: { amount: { type: "number", exclusiveMinimum: 0 }, purpose: { type: "string", maxLength: 10 } },
      required: ["amount", "purpose"],
    };
    for (const [library, gives] of [
      ["zod", true],
      ["arktype", true],
      ["valibot", false],
    ] as const) {
      const { client } = await given(reader(libraries[library]!, "What did you pay?"));
      const { task } = await client.sendMessage("I want money back");
      const parts = task?.status.message?.parts ?? [];
      expect(parts[0], library).toEqual({ text: "What did you pay?" });
      expect(parts).toHaveLength(gives ? 2 : 1);
      if (gives) expect(parts[1]).toMatchObject({ data: form, mediaType: "application/schema+json" });
    }
  });

  it("does not change a question with its own data, or if the schema or the client has no form support", async () => {
    const cases: readonly (readonly [why: string, schema: StandardSchema<unknown>, ask: Content, modes?: string[]])[] =
      [
        ["data of its own", expense, [{ text: "Fill in" }, { data: { form: {} } }]],
        ["a client that reads only text", expense, "Fill in", ["text/plain", "text"]],
        ["a type that JSON Schema lacks", z.object({ at: z.date() }), "Fill in"],
        ["a form of 64 KiB", z.object({ a: z.string().describe("x".repeat(64 << 10)) }), "Fill in"],
      ];
    for (const [why, schema, ask, acceptedOutputModes = []] of cases) {
      const { client } = await given({
        async onMessage(turn) {
          await turn.data(schema, { ask });
        },
      });
      const { task } = await client.sendMessage({ message: message("Go"), configuration: { acceptedOutputModes } });
      expect(task?.status.message?.parts, why).toEqual(typeof ask === "string" ? [{ text: ask }] : ask);
    }
    const { client } = await given(reader(expense, "Fill in"));
    for (const mode of ["*/*", "application/json", "application/schema+json; charset=utf-8"]) {
      const configuration = { acceptedOutputModes: ["text/plain", mode] };
      const { task } = await client.sendMessage({ message: message("Go"), configuration });
      expect(task?.status.message?.parts, mode).toHaveLength(2);
    }
  });

  it("with `ask` accepts a text that is one whole JSON object, because many clients can only send text", async () => {
    const { client } = await given(reader(expense, "Please send amount and purpose"));
    const conversation = client.conversation();
    const { task } = await conversation.send("I want money back");
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    const { task: again } = await conversation.send('{"amount": "4", "purpose": "tea"}');
    expect(again?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(again?.status.message?.parts.at(-1)?.text).toMatch(
      /cannot be used:\n- message\.parts\[0\]\.text\.amount does not fit: .*expected number/,
    );
    const { task: done } = await conversation.send('\n {"amount": 4, "purpose": "tea"}\n');
    expect(done?.id).toBe(task?.id);
    expect(done?.status).toMatchObject({ state: "TASK_STATE_COMPLETED", message: { parts: [{ text: "4 for tea" }] } });
    const { message: reply } = await client.sendMessage('{"amount": 5, "purpose": "tea"}');
    expect(reply?.parts).toEqual([{ text: "5 for tea" }]);
  });

  it("with `ask` accepts no other text, and prefers data to text", async () => {
    const { client } = await given(reader(expense, "Please send amount and purpose"));
    const whole = '{"amount": 4, "purpose": "tea"}';
    const others: readonly (readonly Part[])[] = [
      [{ text: `Here: ${whole}` }],
      [{ text: `${whole} ${whole}` }],
      [{ text: `[${whole}]` }],
      [{ text: whole }, { text: whole }],
      [{ text: whole.slice(1) }],
      [{ text: whole.slice(0, -1) }],
      [{ text: `{"a":${"[".repeat(200)}${"]".repeat(200)}}` }],
    ];
    for (const parts of others) {
      const { task } = await client.sendMessage(parts);
      expect(task?.status.state, JSON.stringify(parts)).toBe("TASK_STATE_INPUT_REQUIRED");
      expect(task?.status.message?.parts[0], JSON.stringify(parts)).toEqual({ text: "Please send amount and purpose" });
    }
    const both = await client.sendMessage([{ text: whole }, { data: { amount: 6, purpose: "data" } }]);
    expect(both.message?.parts).toEqual([{ text: "6 for data" }]);
  });

  it("without `ask` does not parse text, not even within a task", async () => {
    const { client } = await given(reader(expense));
    const error = await refusal(client, [{ text: '{"amount": 4, "purpose": "tea"}' }]);
    expect(error.fields).toEqual([{ field: "message.parts", description: "has no data part" }]);
  });

  it("rejects the first event of a stream in the same way (A2A 1.0 §3.1.2)", async () => {
    const { client } = await given(reader(expense));
    const read = async (): Promise<void> => {
      for await (const event of client.sendStreamingMessage([{ data: {} }])) expect.unreachable(JSON.stringify(event));
    };
    await expect(read()).rejects.toMatchObject({ code: "InvalidParams" });
  });

  it("asks if the task was created before the agent read the message (A2A 1.0 §3.2.2)", async () => {
    const { client } = await given({ ...reader(expense), mayReplyDirectly: false });
    const { task } = await client.sendMessage([{ data: {} }]);
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  });

  it("does not close an earlier question of the agent", async () => {
    const { client } = await given({
      async *onMessage(turn) {
        yield turn.inputRequired("First question");
        await turn.data(expense);
      },
    });
    const { task } = await client.sendMessage("Go");
    expect(task?.status.message?.parts).toEqual([{ text: "First question" }]);
  });

  it("runs the agent's finally, and keeps its earlier events", async () => {
    const ended: string[] = [];
    const { client } = await given({
      async *onMessage(turn) {
        try {
          yield turn.artifact({ name: "before", parts: [{ text: "before" }] });
          await turn.data(expense);
        } finally {
          ended.push("ended");
        }
      },
    });
    const { task } = await client.sendMessage("Go");
    expect(task?.artifacts).toHaveLength(1);
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(ended).toEqual(["ended"]);
  });

  it("asks once if a crash comes after the question", async () => {
    const agent = await given({
      resumable: true,
      async *onMessage(turn) {
        yield turn.working("Reading");
        await turn.data(expense);
      },
    });
    const { task } = await agent.client.sendMessage("Go");
    await agent.crash();
    await agent.restart();
    const after = await agent.client.getTask(task?.id ?? "");
    expect(after.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(after.history?.filter(({ role }) => role === "ROLE_AGENT")).toHaveLength(1);
  });

  it("fails the task without details if the schema itself throws", async () => {
    const schema: StandardSchema<Expense> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: () => {
          throw new Error(secret);
        },
      },
    };
    const { client } = await given(reader(schema));
    const { task } = await client.sendMessage([{ data: 1 }]);
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(JSON.stringify(task)).not.toContain(secret);
  });

  it("lets an agent reject a message by its own rule", async () => {
    const { client } = await given({
      onMessage() {
        return Promise.reject(
          new MessageRefused([{ field: "message.parts[0].data.to", description: "is before the beginning" }]),
        );
      },
    });
    expect(await refusal(client, [{ data: {} }])).toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "message.parts[0].data.to", description: "is before the beginning" }],
    });
  });

  it("does not blame the caller if another agent rejects its data", async () => {
    const other = await given(reader(expense));
    const { client } = await given({
      async *onMessage(turn) {
        yield turn.working("Asking another agent");
        await other.client.sendMessage([{ data: {} }]);
      },
    });
    const { task } = await client.sendMessage("Go");
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
  });
});

describe("StandardSchema", () => {
  it("is the standard's interface, in both directions", () => {
    const theirs: StandardSchemaV1<unknown, Expense> = libraries["zod"]!;
    const ours: StandardSchema<Expense> = theirs;
    expect(ours["~standard"].version).toBe(1);
  });
});

describe("dataOf()", () => {
  const expense = libraries["zod"]!;
  const good = { amount: 1, purpose: "tea" };

  it("reads answers of every kind: a direct reply, a task, an artifact, a message, an event, parts", async () => {
    const { client } = await given({
      async *onMessage(turn) {
        if (turn.text === "reply") return turn.reply({ data: good });
        yield turn.artifact({ parts: [{ text: "Here" }, { data: good }] });
        return undefined;
      },
    });
    expect(await dataOf(await client.sendMessage("reply"), expense)).toEqual(good);
    const response = await client.sendMessage("task");
    expect(await dataOf(response, expense)).toEqual(good);
    const task = response.task!;
    expect(await dataOf(task, expense)).toEqual(good);
    expect(await dataOf(task.artifacts![0]!, expense)).toEqual(good);
    expect(await dataOf(task.artifacts![0]!.parts, expense)).toEqual(good);
    expect(await dataOf(message({ data: good }), expense)).toEqual(good);
    for await (const event of client.sendStreamingMessage("task"))
      if (event.artifactUpdate) expect(await dataOf(event, expense)).toEqual(good);
  });

  const task: Task = {
    id: "t",
    contextId: "c",
    status: {
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { ...message({ data: { ...good, amount: 3 } }), role: "ROLE_AGENT" },
    },
    artifacts: [1, 2].map((amount) => ({ artifactId: String(amount), parts: [{ data: { ...good, amount } }] })),
  };

  it("reads the newest matching artifact of a task, or else the message of its status", async () => {
    expect((await dataOf(task, expense)).amount).toBe(2);
    expect((await dataOf({ ...task, artifacts: [] }, expense)).amount).toBe(3);
    expect((await dataOf(task, z.object({ amount: z.literal(1) }))).amount).toBe(1);
  });

  it("reports errors as InvalidResponse, with the path in the answer, and without the values", async () => {
    const artifacts = [{ artifactId: "1", parts: [{ text: "x" }, { data: { amount: secret, purpose: "tea" } }] }];
    const wrong = dataOf({ task: { ...task, artifacts, status: { state: "TASK_STATE_COMPLETED" } } }, expense);
    const error = await wrong.catch((thrown: A2AError) => thrown);
    expect(error).toMatchObject({ code: "InvalidResponse" });
    expect((error as A2AError).fields.map(({ field }) => field)).toEqual(["task.artifacts[0].parts[1].data.amount"]);
    expect(JSON.stringify([error, (error as A2AError).message])).not.toContain(secret);
    await expect(dataOf([{ text: "x" }], expense)).rejects.toMatchObject({
      code: "InvalidResponse",
      message: "The answer has no data",
    });
    await expect(dataOf({}, expense)).rejects.toMatchObject({ code: "InvalidResponse" });
  });
});

describe("a third-party schema", () => {
  const schema = (validate: unknown): StandardSchema<Expense> =>
    ({ "~standard": { version: 1, vendor: "test", validate } }) as StandardSchema<Expense>;

  it("that changes the value in place does not change the message", async () => {
    const sets = schema((value: { amount: number }) => ({ value: Object.assign(value, { amount: 7 }) }));
    const part = message({ data: { amount: 1, purpose: "tea" } });
    expect(await dataOf(part, sets)).toEqual({ amount: 7, purpose: "tea" });
    expect(part.parts[0]?.data).toEqual({ amount: 1, purpose: "tea" });
  });

  it("that gives no reason still rejects the value", async () => {
    const { client } = await given(reader(schema(() => ({ issues: [] }))));
    const { fields } = await refusal(client, [data({ amount: 1 })]);
    expect(fields).toEqual([
      { field: "message.parts[0].data", description: "does not fit: the schema does not say why" },
    ]);
  });

  it("that is invalid, or returns nothing, is named in the log", async () => {
    const wrong: readonly unknown[] = [
      undefined,
      { type: "object" },
      schema(() => null),
      schema(() => ({ issues: "no" })),
    ];
    for (const each of wrong) {
      const agent = await given(reader(each as StandardSchema<Expense>));
      await agent.client.sendMessage({ parts: [data({ amount: 1 })] });
      expect(agent.problems.join()).toMatch(/TypeError: A schema (?:for data must be of a library|returned neither)/);
    }
  });
});
