import { data, text, type JsonObject, type Part, type StreamResponse, type TaskStatus } from "@parley/a2a/model";
import { defineAgent, type Server } from "@parley/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { formIn, isForm } from "@parley/a2a/internal/schema/form";
import { fill } from "../src/form.ts";
import { follow } from "../src/follow.ts";
import { hintsFor } from "../src/invocation.ts";
import { run } from "../src/program.ts";
import { recordedIo } from "./support/io.ts";
import { startServer } from "./support/server.ts";

const Trip = z
  .object({
    city: z.string().min(2).max(20).meta({ title: "City", description: "Where it goes" }),
    day: z.iso.date(),
    seats: z.int().min(1).max(9).default(1),
    price: z.number().positive().max(1000),
    class: z.enum(["First", "Second"]),
    quiet: z.boolean(),
    mail: z.email().optional(),
    note: z.string().nullable().optional(),
    kind: z.literal("trip"),
    extras: z.array(z.string()).optional(),
  })
  .refine(({ city, price }) => city !== "Basel" || price < 100, { message: "too expensive", path: ["price"] });

const definition: Parameters<typeof defineAgent>[0] = {
  name: "Trips",
  description: "Books trips.",
  version: "1.0.0",
  skills: [],
  defaultInputModes: ["text/plain", "application/json"],
  async *onMessage(turn) {
    if (turn.text === "list") {
      const names = await turn.data(z.object({ names: z.array(z.string()) }), { ask: "Which names?" });
      return yield turn.completed(names.names.join(" "));
    }
    if (turn.text === "own") {
      const form = { type: "object", properties: { "it's": { type: "string", default: "$(id)" } } };
      yield turn.inputRequired([text("Fill in."), data({ type: "form", form })]);
      return;
    }
    if (turn.number === 1) yield turn.artifact({ name: "plan", parts: [text("A plan.\n")] });
    const trip = await turn.data(Trip, { ask: "Where to?" });
    yield turn.completed([data(trip)]);
  },
};

let server: Server;
/** The same agent, without streaming. */
let polled: Server;
beforeAll(async () => {
  server = await startServer(defineAgent(definition));
  polled = await startServer(defineAgent({ ...definition, capabilities: { streaming: false } }));
});
afterAll(() => Promise.all([server.close(), polled.close()]));

/** Runs a command on a terminal, with a line for each question. */
async function typed(args: readonly string[], lines: readonly string[], init: { interactive?: boolean } = {}) {
  const answers = [...lines];
  const questions: string[] = [];
  const recorded = recordedIo({
    terminal: true,
    interactive: true,
    env: { XDG_CONFIG_HOME: "/nowhere", PARLEY_KEYCHAIN: "off", NO_COLOR: "1" },
    ...init,
  });
  const ask = async (question: string): Promise<string | undefined> => {
    questions.push(question.trim());
    return answers.shift();
  };
  const code = await run(args, { ...recorded.io, ask });
  return { code, questions, left: answers, out: recorded.out(), err: recorded.err() };
}

describe.each([
  ["a stream", []],
  ["one answer", ["--no-stream"]],
])("parley send fills the form of a question, with %s", (_, options) => {
  const send = (lines: readonly string[]) => typed(["send", server.url, "Book", ...options], lines);

  test("field by field: it shows each field's constraints, checks the input, and offers defaults", async () => {
    const wrong = ["", "B", "Bern", "2026-02-31x", "2026-02-28", "1.5", "10", "", "free", "0", "1000.5", "70"];
    const more = ["third", "second", "perhaps", "y", "nobody", "", ""];
    const { code, questions, left, out, err } = await send([...wrong, ...more]);
    expect({ code, left }).toEqual({ code: 0, left: [] });
    const asked = (label: string, times: number): string[] => Array.from({ length: times }, () => label);
    expect(questions).toEqual([
      ...asked("City:", 3),
      ...asked("day (date):", 2),
      ...asked("seats (whole number, at least 1, at most 9, optional) [1]:", 3),
      ...asked("price (number, more than 0, at most 1000):", 4),
      ...asked("class (First or Second):", 2),
      ...asked("quiet (yes or no):", 2),
      ...asked("mail (email, optional):", 2),
      "note (optional):",
      // No question for `kind`, which can have one value only.
    ]);
    for (const problem of [
      "Where it goes",
      "It is required",
      "It must have at least 2 characters",
      "It must be a date such as 2026-01-31",
      "It must be a whole number",
      "It must be at most 9",
      "It must be a number",
      "It must be more than 0",
      "It must be at most 1000",
      "It must be First or Second",
      "It must be yes or no",
      "It must be an e-mail address",
    ])
      expect(err).toContain(`  ${problem}\n`);
    expect(out).not.toContain("$schema");
    expect(out.split("A plan.")).toHaveLength(2);
    expect(out).toContain(
      '{"city":"Bern","day":"2026-02-28","seats":1,"price":70,"class":"Second","quiet":true,"kind":"trip"}',
    );
    expect(err).toMatch(
      /\? input-required\nThe agent is waiting for a form\. Press Ctrl-D to leave it\.\n[^]*✓ completed\n$/,
    );
    expect(err).not.toContain("--data");
  });

  test("again if the agent rejects it, with the earlier answers as defaults", async () => {
    const first = ["Basel", "2026-02-28", "2", "500", "First", "n", "", "Window"];
    const { code, questions, out } = await send([...first, "", "", "", "50", "", "", "", ""]);
    expect(code).toBe(0);
    expect(questions.slice(8)).toEqual([
      "City [Basel]:",
      "day (date) [2026-02-28]:",
      "seats (whole number, at least 1, at most 9, optional) [2]:",
      "price (number, more than 0, at most 1000) [500]:",
      "class (First or Second) [First]:",
      "quiet (yes or no) [no]:",
      "mail (email, optional):",
      "note (optional) [Window]:",
    ]);
    expect(out).toContain("message.parts[0].data.price does not fit: too expensive");
    expect(out).toContain('{"city":"Basel","day":"2026-02-28","seats":2,"price":50,"');
  });

  test("a user who cancels it gets a working command with --data", async () => {
    const { code, questions, err } = await send(["Bern"]);
    expect({ code, questions: questions.length }).toEqual({ code: 0, questions: 2 });
    const [, task = "", form = ""] = /\n {2}parley send \S+ --task (\S+) --data '(.*)'\n$/.exec(err) ?? [];
    expect(err).toContain("The agent is waiting for a form:\n  parley send");
    const sample = JSON.parse(form) as JsonObject;
    expect(sample).toEqual({
      city: "…",
      day: "…",
      seats: 1,
      price: 0,
      class: "First",
      quiet: false,
      mail: "…",
      note: "…",
      kind: "trip",
      extras: [],
    });
    const { mail: _, ...others } = sample;
    const filled = { ...others, city: "Bern", day: "2026-02-28", price: 1 };
    const answered = await typed(["send", server.url, "--task", task, "--data", JSON.stringify(filled)], []);
    expect(answered).toMatchObject({ code: 0, questions: [] });
    expect(answered.err).toContain("✓ completed");
  });
});

describe("parley watch", () => {
  const answers = ["Bern", "2026-02-28", "", "70", "second", "y", "", ""];

  async function waitingTask(at: string): Promise<string> {
    const { err } = await typed(["send", at, "Book"], [], { interactive: false });
    return / --task (\S+) /.exec(err)?.[1] ?? "";
  }

  // A waiting task's stream stays open, because someone else may answer.
  test.each([true, false])("fills the form that a task waits for (the agent streams: %s)", async (streams) => {
    const at = streams ? server.url : polled.url;
    const { code, questions, left, out, err } = await typed(["watch", at, await waitingTask(at)], answers);
    expect({ code, left }).toEqual({ code: 0, left: [] });
    expect(questions[0]).toBe("City:");
    expect(out).toContain('{"city":"Bern","day":"2026-02-28","seats":1,"price":70,"class":"Second","quiet":true,');
    expect(err).toMatch(/The agent is waiting for a form\. Press Ctrl-D to leave it\.\n[^]*✓ completed\n$/);
  });

  test("ends if the user ends the form, and suggests --data", async () => {
    const { code, err } = await typed(["watch", server.url, await waitingTask(server.url)], ["Bern"]);
    expect(code).toBe(0);
    expect(err).toMatch(
      /The agent is waiting for a form:\n {2}parley send \S+ --task \S+ --data '\{"city":"…"[^\n]*\n$/,
    );
  });

  test.each<readonly [why: string, args: readonly string[], interactive: boolean]>([
    ["without a terminal", [], false],
    ["with --json", ["--json"], true],
  ])("shows no form %s", async (_, args, interactive) => {
    const task = await waitingTask(polled.url);
    const { code, questions, err } = await typed(["watch", polled.url, task, ...args], answers, { interactive });
    expect({ code, questions }).toEqual({ code: 0, questions: [] });
    expect(err).toContain("The agent is waiting for a form:\n  parley send ");
  });
});

describe("parley send shows no form, and suggests --data", () => {
  test.each<readonly [why: string, args: readonly string[], interactive: boolean]>([
    ["without a terminal", ["Book"], false],
    ["with --json", ["Book", "--json"], true],
    ["with the text from standard input", ["-"], true],
  ])("%s", async (_, args, interactive) => {
    const { code, questions, err } = await typed(["send", server.url, ...args], ["Bern"], {
      interactive,
      ...(args[0] === "-" && { stdin: "Book" }),
    });
    expect({ code, questions }).toEqual({ code: 0, questions: [] });
    expect(err).toMatch(/The agent is waiting for a form:\n {2}parley send \S+ --task \S+ --data '\{"city":"…"/);
  });

  test("if a required field is a list", async () => {
    const { questions, err } = await typed(["send", server.url, "list"], ["a"]);
    expect(questions).toEqual([]);
    expect(err).toMatch(/ --data '\{"names":\[\]\}'\n$/);
  });

  test("with text of an agent in quotes, so a copied command runs nothing of it", async () => {
    const { questions, out, err } = await typed(["send", server.url, "own"], []);
    expect(questions).toEqual(["it's (optional) [$(id)]:"]);
    expect(out).not.toContain("properties");
    expect(err).toContain(` --data '{"it'\\''s":"$(id)"}'\n`);
  });

  test("and a pipe gets the form unchanged", async () => {
    const recorded = recordedIo({ env: { XDG_CONFIG_HOME: "/nowhere", PARLEY_KEYCHAIN: "off" } });
    expect(await run(["send", server.url, "Book"], recorded.io)).toBe(0);
    expect(recorded.out()).toContain('"$schema": "https://json-schema.org/draft/2020-12/schema"');
  });
});

test("a stream that begins with the answered question asks the next question, not the same again", async () => {
  const asking = (name: string): TaskStatus => {
    const form = { type: "object", properties: { [name]: { type: "string" } }, required: [name] };
    const parts = [{ data: form, mediaType: "application/schema+json" }];
    return { state: "TASK_STATE_INPUT_REQUIRED", message: { messageId: name, role: "ROLE_AGENT", parts } };
  };
  const ids = { taskId: "t1", contextId: "c1" };
  const task = (status: TaskStatus): StreamResponse => ({ task: { id: "t1", contextId: "c1", status } });
  const streams: StreamResponse[][] = [
    [task(asking("one"))],
    [task(asking("one")), { statusUpdate: { ...ids, status: asking("two") } }],
    [task(asking("two")), { statusUpdate: { ...ids, status: { state: "TASK_STATE_COMPLETED" } } }],
  ];
  const next = async function* (): AsyncGenerator<StreamResponse> {
    yield* streams.shift() ?? [];
  };
  const { io, err } = recordedIo({ interactive: true, stdin: "1\n2\n3" });
  const sent: JsonObject[] = [];
  const code = await follow(io, next, {
    hints: hintsFor("http://a", {}),
    options: {},
    streams: true,
    answer: (taskId, filled) => (sent.push({ taskId, ...filled }), next),
  });
  expect({ code, sent }).toEqual({
    code: 0,
    sent: [
      { taskId: "t1", one: "1" },
      { taskId: "t1", two: "2" },
    ],
  });
  expect(err()).toContain("✓ completed");
});

describe("a form", () => {
  const of = (schema: unknown) => {
    const part = { data: schema, mediaType: "application/schema+json" } as Part;
    return formIn({ messageId: "m", role: "ROLE_AGENT", parts: [{ text: "?" }, part] });
  };
  const object = (properties: object, required: readonly string[] = []): object => ({
    type: "object",
    properties,
    required,
  });

  test("is found by its media type, and in the member `form` of data", () => {
    const schema = object({ a: { type: "string" } });
    expect(isForm({ data: schema as JsonObject })).toBe(false);
    expect(isForm({ data: schema as JsonObject, mediaType: "application/schema+json; charset=utf-8" })).toBe(true);
    expect(isForm({ data: { form: schema as JsonObject } })).toBe(true);
    expect(isForm({ data: { form: "a" } })).toBe(false);
    expect(isForm({ text: "a" })).toBe(false);
  });

  test("that is hostile is not shown, and breaks nothing", () => {
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`f${at}`, { type: "string" }]));
    let deep: object = { type: "string" };
    for (let level = 0; level < 400; level += 1) deep = object({ a: deep });
    for (const schema of [
      {},
      { type: "array" },
      { anyOf: [object({ a: {} }), object({ b: {} })] },
      { type: ["object", "string"] },
      object({}),
      object(many),
      object({ a: { $ref: "#" } }, ["a"]),
      object({ a: { anyOf: [{ type: "string" }, { type: "number" }] } }, ["a"]),
      object({ a: { enum: [{ b: 1 }] } }, ["a"]),
      object({ a: null }, ["a"]),
      object({ a: deep }, ["a"]),
      { properties: 1, required: 2, type: {} },
    ])
      expect(of(schema)?.fields, JSON.stringify(schema).slice(0, 80)).toBeUndefined();
    expect(JSON.stringify(of(object({ a: deep }))?.sample).length).toBeLessThan(100);
    expect(of(object({ a: { $ref: "#" }, b: { type: "string" } }))?.fields?.map(({ name }) => name)).toEqual(["b"]);
  });

  test("never moves the cursor, hides secrets, and treats names as data", async () => {
    const schema = JSON.parse(
      `{"type":"object","required":["__proto__"],"properties":{"__proto__":{"type":"string","title":"\\u001b[2Ja"},"key":{"type":"string","format":"password"}}}`,
    ) as object;
    const { io, err } = recordedIo();
    const hidden: boolean[] = [];
    const questions: string[] = [];
    const answers = ["1", "secret-of-form-0123456789"];
    const ask: typeof io.ask = async (question, options) => {
      questions.push(question);
      hidden.push(options.hidden);
      return answers.shift();
    };
    const filled = await fill({ ...io, ask }, of(schema)?.fields ?? [], {});
    expect(Object.entries(filled ?? {})).toEqual([
      ["__proto__", "1"],
      ["key", "secret-of-form-0123456789"],
    ]);
    expect(hidden).toEqual([false, true]);
    expect(questions.join("") + err()).not.toContain("\u001b");
  });
});
