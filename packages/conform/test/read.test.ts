import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readSuites } from "../src/acts/read.ts";
import type { Test } from "../src/acts/format.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "parley-acts-"))));
afterAll(() => rm(folder, { recursive: true }));

let files = 0;
async function read(text: string): Promise<Test> {
  const path = join(folder, `${(files += 1)}.acts.yaml`);
  await writeFile(path, text);
  const [suite] = await readSuites(path);
  return suite!.tests[0]!;
}

/** A file with one test, whose members are given. */
function file(test: string, transport = ""): string {
  const indented = test.trim().replaceAll("\n", "\n        ");
  return `
acts_version: "1.0"
spec_version: "1.0.1"
suites:
  - id: s
    name: S
    tags: [all]
    tests:
      - id: T-1
        name: T
        level: must
        ${transport}
        ${indented}
`;
}

const step = (members: string): string => file(`steps:\n  - id: a\n    ${members.trim().replaceAll("\n", "\n    ")}`);

describe("the spellings of other files", () => {
  test("an error may be named by code, one or several", async () => {
    const one = await read(step("operation: get_task\nexpect_error: { code: TaskNotFoundError }"));
    const several = await read(
      step("operation: get_task\nexpect_error: { code: { one_of: [TaskNotFoundError, InternalError] } }"),
    );
    expect(one.steps[0]).toMatchObject({ expectError: { types: ["TaskNotFoundError"] } });
    expect(several.steps[0]).toMatchObject({ expectError: { types: ["TaskNotFoundError", "InternalError"] } });
  });

  test("webhooks and the extended card have other names", async () => {
    const push = await read(step("operation: set_push_notification_config\nparams: { taskId: x }"));
    const card = await read(step("operation: get_agent_card\nparams: { extended: true }"));
    expect(push.steps[0]).toMatchObject({ operation: "create_push_config", params: { taskId: "x" } });
    expect(card.steps[0]).toMatchObject({ operation: "get_extended_agent_card", params: {} });
  });

  test("an expectation without `body` describes the body; `error` in it means any error", async () => {
    const bare = await read(step("operation: send_message\nexpect: { status: 200, task: { id: x } }"));
    const error = await read(step("operation: send_message\nexpect: { status: error, error: { exists: true } }"));
    expect(bare.steps[0]).toMatchObject({ expect: { status: 200, body: { task: { id: "x" } }, error: false } });
    expect(error.steps[0]).toMatchObject({ expect: { error: true } });
  });

  test("events are named in snake_case or camelCase", async () => {
    const test = await read(
      step(
        "operation: send_streaming_message\nexpect_stream: { final_event: { one_of: [{ status_update: { taskId: x } }] } }",
      ),
    );
    expect(test.steps[0]).toMatchObject({
      expectStream: { finalEvent: { one_of: [{ statusUpdate: { taskId: "x" } }] } },
    });
  });
});

test("tags are inherited, and a patch number of the version is dropped", async () => {
  expect(await read(step("operation: get_task"))).toMatchObject({ tags: ["all"], version: "1.0" });
});

test("a master file includes others, each once; a folder is read as a whole; JSON is YAML", async () => {
  const inner = await mkdtemp(join(folder, "master-"));
  await writeFile(join(inner, "one.acts.yaml"), step("operation: get_task"));
  const two = { acts_version: "1", spec_version: "1.0", suites: [{ id: "two", name: "2", tests: [] }] };
  await writeFile(join(inner, "two.acts.json"), JSON.stringify(two));
  await writeFile(
    join(inner, "all.acts.yaml"),
    'acts_version: "1.0"\nspec_version: "1.0"\ninclude: [one.acts.yaml, two.acts.json, one.acts.yaml]\n',
  );
  for (const path of [inner, join(inner, "all.acts.yaml")]) {
    expect((await readSuites(path)).map(({ id }) => id)).toEqual(["s", "two"]);
  }
});

describe("an invalid file is rejected with the place of the mistake", () => {
  test.each([
    ["no YAML", "acts_version: [", /Flow sequence/],
    ["another format", 'acts_version: "2.0"\nspec_version: "1.0"\nsuites: []', /acts_version is 2\.0/],
    ["nothing in it", 'acts_version: "1.0"\nspec_version: "1.0"', /suites is missing/],
    [
      "a misspelled check",
      step("operation: get_task\nexpext: { status: 200 }"),
      /steps\[0\]\.expext is not a known key/,
    ],
    [
      "a misspelled member of a check",
      step("operation: get_task\nexpect_stream: { min: 1 }"),
      /expect_stream\.min is not a known key/,
    ],
    ["an unknown operation", step("operation: dance"), /operation dance is unknown/],
    ["two kinds of step in one", step("operation: get_task\nraw: { method: GET, path: / }"), /is required/],
    ["no kind of step", step("expect: { status: 200 }"), /is required/],
    [
      "an unknown level",
      file("level: can\nsteps: []").replace("level: must", ""),
      /level must be one of must, should, may; got can/,
    ],
    ["no steps", file("steps: []"), /steps is missing/],
    [
      "two steps of one id",
      file("steps: [{ id: a, operation: get_task }, { id: a, operation: get_task }]"),
      /two steps with the id a/,
    ],
    [
      "a raw step for every binding",
      step("raw: { method: GET, path: / }\nexpect: { status: 200 }"),
      /transport must name one binding/,
    ],
    [
      "a raw step that checks nothing",
      file("steps: [{ id: a, raw: { method: GET, path: / } }]", "transport: [rest]"),
      /expect or one of/,
    ],
    ["a wrong type", step("operation: get_task\ndelay_ms: soon"), /delay_ms must be a number/],
  ])("%s", async (_, text, message) => {
    await expect(read(text)).rejects.toThrow(message);
  });

  test("two tests of one id", async () => {
    const inner = await mkdtemp(join(folder, "twice-"));
    await writeFile(join(inner, "1.acts.yaml"), step("operation: get_task"));
    await writeFile(join(inner, "2.acts.yaml"), step("operation: get_task"));
    await expect(readSuites(inner)).rejects.toThrow(/two tests have the id T-1/);
  });
});
