import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Server } from "@parley/node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { run } from "../src/program.ts";
import scripted from "./fixtures/agent.ts";
import { recordedIo } from "./support/io.ts";
import { startServer } from "./support/server.ts";
import { startDamaged } from "../../conform/test/damage.ts";
import { startParley } from "../../conform/test/support.ts";

let server: Server;
let folder = "";
beforeAll(async () => {
  server = await startParley("plain");
  folder = await mkdtemp(join(tmpdir(), "parley-conform-"));
});
afterAll(async () => {
  await server.close({ grace: 0 });
  await rm(folder, { recursive: true });
});

const header = 'acts_version: "1.0"\nspec_version: "1.0"\n';
/** A test that passes, one that fails, and one that does not apply. */
const mixed = `${header}variables: { who: "{{name}}" }
suites:
  - id: mixed
    name: Mixed <&> "suite"
    tests:
      - id: MIX-1
        name: holds
        level: must
        steps:
          - { id: card, operation: get_agent_card, expect: { body: { name: "{{who}}" } } }
      - id: MIX-2
        name: "does not hold \\u0007 <&>"
        spec_ref: "§1.2"
        level: LEVEL
        steps:
          - { id: card, operation: get_agent_card, expect: { body: { version: "9.9.9" } } }
      - id: MIX-3
        name: does not apply
        level: must
        preconditions: { capabilities: { pushNotifications: true } }
        steps:
          - { id: card, operation: get_agent_card }
`;

async function conform(
  level: string,
  args: readonly string[],
  terminal = false,
): Promise<{ code: number; out: string; err: string }> {
  await writeFile(join(folder, `${level}.acts.yaml`), mixed.replace("LEVEL", level));
  const { io, out, err } = recordedIo({ cwd: folder, terminal });
  const argv = ["conform", server.url, "--acts", `${level}.acts.yaml`, "--var", "name=ACTS agent", ...args];
  return { code: await run(argv, io), out: out(), err: err() };
}

describe("the report", () => {
  test("shows level, section, binding, expected and actual result; a failed MUST exits with 1", async () => {
    const { code, out, err } = await conform("must", ["--binding", "JSONRPC"]);
    expect({ code, err }).toEqual({ code: 1, err: "" });
    // The other bindings do not matter here.
    expect(out.replace(/\n.* was not run: .*\n/g, "")).toBe(`ACTS agent at ${server.url}

jsonrpc 1.0 at ${server.url}
  FAIL MUST MIX-2 does not hold ␇ <&> (§1.2)
       jsonrpc, step card
       expected version: "9.9.9"
       got      "1.0.0"
  not applicable, only for agents with the capability pushNotifications: true: MIX-3
  MUST:   1/3 passed (1 failed, 1 not applicable)

Not conformant: 1 of 2 MUST checks failed; 6 MUST checks that may apply did not run.
Not run:
      3  HTTP+JSON 1.0: not requested
      3  GRPC 1.0: not requested
`);
  });

  test("shows a failed SHOULD, and exits with 0", async () => {
    const { code, out } = await conform("should", []);
    expect(code).toBe(0);
    expect(out).toContain("FAIL SHOULD MIX-2");
    expect(out).toContain("SHOULD: 0/1 passed (1 failed)");
    expect(out).toContain("rest 1.0 at");
    expect(out).toMatch(/\nConformant: all applicable MUST checks passed \(3\)\.\n$/);
  });

  test("shows the HTTP status of an error of 0.3, if the binding is REST", async () => {
    const step = "{ id: a, operation: get_task, params: { id: unknown } }";
    await writeFile(
      join(folder, "old.acts.yaml"),
      `acts_version: "1.0"
spec_version: "0.3"
suites: [{ id: s, name: S, tests: [{ id: OLD-1, name: old, level: must, steps: [${step}] }] }]`,
    );
    const { io, out } = recordedIo({ cwd: folder });
    await run(["conform", server.url, "--acts", "old.acts.yaml"], io);
    expect(out().match(/got +.*/g)).toEqual([
      "got      HTTP 200, error -32001: Task not found",
      "got      HTTP 404, error -32001: Task not found",
      "got      HTTP 200, error -32001: TaskNotFoundError: Task not found",
    ]);
  });

  test("uses colours and progress only on a terminal", async () => {
    const plain = await conform("must", []);
    const shown = await conform("must", [], true);
    expect(plain.out + plain.err).not.toContain("\u001b");
    expect(shown.out).toContain("\u001b[31mFAIL MUST");
    expect(shown.err.startsWith("\r\u001b[K")).toBe(true);
    expect(shown.err).toMatch(/\d\/\d jsonrpc 1\.0 MIX-\d/);
    expect(shown.err.endsWith("\r\u001b[K")).toBe(true);
  });

  test("with --json is one report of ACTS §13 for each binding", async () => {
    const { code, out } = await conform("must", ["--json"]);
    expect(code).toBe(1);
    const report = JSON.parse(out);
    expect(report).toMatchObject({ url: server.url, conformant: false });
    expect(report.reports.map(({ transport }: { transport: string }) => transport)).toEqual([
      "jsonrpc",
      "rest",
      "grpc",
    ]);
    const level = { total: 3, passed: 1, failed: 1, skipped: 1, errors: 0 };
    expect(report.reports[1]).toMatchObject({
      acts_version: "1.0",
      spec_version: "1.0",
      generated_at: expect.stringMatching(/^\d{4}-.*Z$/),
      sdk: { name: "ACTS agent", version: "1.0.0", language: "unknown" },
      transport: "rest",
      summary: { ...level, duration_ms: expect.any(Number), by_level: { must: level, should: { total: 0 } } },
      suites: [
        {
          id: "mixed",
          tests: [
            { id: "MIX-1", level: "must", result: "pass", duration_ms: expect.any(Number) },
            {
              id: "MIX-2",
              result: "fail",
              failure: { step_id: "card", expected: '"9.9.9"', actual: '"1.0.0"', assertion_path: "version" },
              steps: [{ id: "card", result: "fail" }],
            },
            { id: "MIX-3", result: "skip", skip_reason: expect.stringContaining("pushNotifications") },
          ],
        },
      ],
    });
  });

  test("for build servers is valid JUnit, without characters that XML does not allow", async () => {
    await conform("must", ["--junit", "report.xml", "--binding", "HTTP+JSON"]);
    const text = await readFile(join(folder, "report.xml"), "utf8");
    expect(text).toContain('<testsuite name="rest-1.0.mixed" tests="3" failures="1" errors="0" skipped="1"');
    expect(text).toContain('name="MUST MIX-2 does not hold \ufffd &lt;&amp;&gt;"');
    expect(text).toContain('<failure message="version: expected &quot;9.9.9&quot;, got &quot;1.0.0&quot;">');
    expect(text).toContain("<skipped message=");
  });

  test("that cannot be written is an error of the command", async () => {
    const { code, err } = await conform("should", ["--junit", "no/such/folder.xml"]);
    expect(code).toBe(1);
    expect(err).toMatch(/cannot write no\/such\/folder\.xml/);
  });
});

describe("the verdict lists what could not be tested (ACTS §12.5)", () => {
  const behaving = `${header}suites:
  - id: verdict
    name: Verdict
    tests:
      - { id: V-1, name: any, level: must, steps: [{ id: a, operation: get_agent_card }] }
      - id: V-2
        name: behaves
        level: must
        requires_behaviors: [tck-complete-task]
        steps: [{ id: a, operation: send_message, params: { message: { role: ROLE_USER, parts: [{ text: tck-complete-task }] } } }]
      - id: V-3
        name: somebody else
        level: must
        steps: [{ id: a, operation: list_tasks, credentials: other }]
      - id: V-4
        name: does not apply
        level: must
        preconditions: { capabilities: { pushNotifications: true } }
        steps: [{ id: a, operation: get_agent_card }]
`;
  const asked = async (...args: readonly string[]): Promise<{ code: number; out: string }> => {
    await writeFile(join(folder, "verdict.acts.yaml"), behaving);
    const { io, out } = recordedIo({ cwd: folder });
    const code = await run(["conform", server.url, "--acts", "verdict.acts.yaml", ...args], io);
    return { code, out: out() };
  };
  const reasons = [
    { reason: "the agent does not offer the test behavior (--acts or --behaviors)", checks: 3 },
    { reason: "needs a second caller (--other-token)", checks: 3 },
  ];

  test("for people, test by test and at the end", async () => {
    const { code, out } = await asked("--behaviors", "none");
    expect(code).toBe(0);
    expect(out).toContain("  not run, the agent does not offer the test behavior tck-complete-task: V-2\n");
    expect(out).toContain("  not applicable, only for agents with the capability pushNotifications: true: V-4\n");
    expect(out).toContain("  MUST:   1/4 passed (2 not run, 1 not applicable)\n");
    expect(out).not.toMatch(/^Conformant/m);
    expect(
      out.endsWith(`
Partial: 3 MUST checks passed; 6 MUST checks that may apply did not run.
Not run:
      3  the agent does not offer the test behavior (--acts or --behaviors)
      3  needs a second caller (--other-token)
`),
    ).toBe(true);
  });

  test("for programs: a verdict, and the figures", async () => {
    const { code, out } = await asked("--behaviors", "none", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      conformant: false,
      verdict: "partial",
      musts: { asked: 3, held: 3, broken: 0, not_asked: 6, not_asked_because: reasons },
    });
    const { suites } = (JSON.parse(out) as { reports: { suites: { tests: object[] }[] }[] }).reports[0] ?? {};
    expect(suites?.[0]?.tests.slice(1)).toMatchObject([{ not_asked: true }, { not_asked: true }, { not_asked: false }]);
  });

  test("for build servers: a skipped test, with the reasons", async () => {
    await asked("--behaviors", "none", "--junit", "verdict.xml");
    const text = await readFile(join(folder, "verdict.xml"), "utf8");
    expect(text).toContain('<testsuites name="A2A conformance" tests="13" failures="0" errors="0" skipped="10">');
    expect(text).toContain(
      '<skipped message="not run: the agent does not offer the test behavior tck-complete-task"/>',
    );
    expect(text).toContain('<skipped message="not applicable: only for agents');
    expect(text).toMatch(
      /<testcase classname="verdict" name="All applicable MUST checks passed" [^>]*><skipped message="Partial: 3 .*3: needs a second caller \(--other-token\)"\/>/,
    );
  });

  test("excluded tests and bindings are counted as well", async () => {
    const { out } = await asked("--filter", "V-1", "--binding", "JSONRPC", "--json");
    expect(JSON.parse(out)).toMatchObject({
      verdict: "partial",
      musts: {
        asked: 1,
        not_asked: 5,
        not_asked_because: expect.arrayContaining([
          { reason: "excluded by the test selection (--filter, --tag, --level or --protocol)", checks: 3 },
          { reason: "GRPC 1.0: not requested", checks: 1 },
        ]),
      },
    });
  });

  test("a server is conformant only if everything that applies was tested", async () => {
    const { code, out } = await asked("--other-token", "somebody");
    expect(code).toBe(0);
    expect(out).toMatch(/\nConformant: all applicable MUST checks passed \(9\)\.\n$/);
  });
});

describe("a custom binding (A2A 1.0 §5.8)", () => {
  const name = "https://example.com/bindings/letters";
  const client = fileURLToPath(new URL("./fixtures/letters.ts", import.meta.url));

  test("is tested with the client of a module", async () => {
    const damaged = await startDamaged(server.url, {
      answer({ body }, { operation }) {
        const interfaces = operation === "AgentCard" ? body.supportedInterfaces : undefined;
        interfaces?.push({ url: interfaces[0].url, protocolBinding: name, protocolVersion: "1.0" });
      },
    });
    onTestFinished(() => damaged.close());
    const { io, out } = recordedIo();
    const args = ["conform", damaged.url, "--client", client, "--binding", name, "--filter", "CORE-GET-102", "--json"];
    expect(await run(args, io)).toBe(0);
    expect(JSON.parse(out())).toMatchObject({
      musts: { asked: 1, held: 1 },
      reports: [{ transport: name, suites: [{ tests: [{ id: "CORE-GET-102", result: "pass" }] }] }],
    });
  });

  test("needs a module that has a client", async () => {
    const { io, err } = recordedIo();
    const none = fileURLToPath(new URL("./fixtures/no-agent.ts", import.meta.url));
    expect(await run(["conform", server.url, "--client", none], io)).toBe(1);
    expect(err()).toMatch(/must be a ClientBinding/);
  });
});

describe("usage", () => {
  test.each([
    ["--acts", "no-such.yaml", /cannot read .*no-such\.yaml: no such file/],
    ["--filter", "NOTHING-*", /no tests selected/],
    ["--tag", "nothing", /no tests selected/],
    ["--var", "novalue", /must be NAME=VALUE/],
    ["--level", "can", /--level <level> must be one of must, should, may; got "can"/],
    ["--webhook", "https://example.com", /does not support TLS/],
    ["--timeout", "0", /whole number/],
    ["--concurrency", "65", /whole number/],
  ])("%s %s ends with 2", async (option, value, message) => {
    const { io, err, out } = recordedIo({ cwd: folder });
    expect(await run(["conform", server.url, option, value], io)).toBe(2);
    expect(err()).toMatch(message);
    expect(out()).toBe("");
  });

  test("an unsupported version exits with 2, and so does an empty folder", async () => {
    const inner = await mkdtemp(join(folder, "versions-"));
    const older = mixed.replace("LEVEL", "may").replace('spec_version: "1.0"', 'spec_version: "0.4"');
    await writeFile(join(inner, "a.acts.yaml"), older);
    for (const [path, message] of [
      [inner, /does not support A2A 0\.4, which some tests require/],
      [await mkdtemp(join(folder, "empty-")), /contains no \*\.acts\.yaml files/],
    ] as const) {
      const { io, err } = recordedIo({ cwd: inner });
      expect(await run(["conform", server.url, "--acts", path], io)).toBe(2);
      expect(err()).toMatch(message);
    }
  });

  test("without a server, or a card, it exits with 1", async () => {
    for (const [url, message] of [
      ["http://127.0.0.1:9", /agent-card\.json failed: /],
      [`${server.url}/nowhere.json`, /has no A2A 1\.0 card \(HTTP 404\)/],
    ] as const) {
      const { io, err } = recordedIo();
      expect(await run(["conform", url], io)).toBe(1);
      expect(err()).toMatch(message);
    }
  });
});

describe("selected tests", () => {
  const ids = async (...args: string[]): Promise<readonly string[]> => {
    const { io, out } = recordedIo();
    await run(["conform", server.url, "--json", "--behaviors", "none", "--binding", "JSONRPC", ...args], io);
    const report = JSON.parse(out());
    return report.reports[0].suites.flatMap((suite: { tests: { id: string; level: string }[] }) =>
      suite.tests.map(({ id, level }) => `${level} ${id}`),
    );
  };

  test("by level, by id or suite, by tag", async () => {
    expect((await ids("--level", "must")).every((one) => one.startsWith("must "))).toBe(true);
    expect(await ids("--filter", "card-cache-*")).toEqual([
      "should CARD-CACHE-101",
      "should CARD-CACHE-102",
      "should CARD-CACHE-103",
    ]);
    expect((await ids("--filter", "streams")).every((one) => one.includes(" STREAM-"))).toBe(true);
    expect(new Set(await ids("--protocol", "0.3"))).toEqual(new Set(await ids("--filter", "v03")));
    expect(await ids("--tag", "extensions")).toEqual(["must EXT-NEG-101", "must EXT-NEG-102"]);
  });
});

describe("tests that the user excluded are listed on standard error", () => {
  test("credentials", async () => {
    const other = await startParley("guarded");
    onTestFinished(() => other.close({ grace: 0 }));
    const { io, err } = recordedIo();
    expect(await run(["conform", other.url, "--filter", "CORE-LIST-101"], io)).toBe(1);
    expect(err()).toBe("The card requires credentials: pass --token or --header.\n");
  });

  test("an agent that is not made for the tests", async () => {
    const other = await startServer(scripted);
    onTestFinished(() => other.close({ grace: 0 }));
    const { io, err } = recordedIo();
    const filter = ["--filter", "CORE-GET-106", "--filter", "CORE-GET-102"];
    expect(await run(["conform", other.url, ...filter, "--acts"], io)).toBe(1);
    expect(err()).toBe("Most tests of behaviors fail. Omit --acts unless the agent supports ACTS.\n");
    expect(await run(["conform", other.url, ...filter], recordedIo().io)).toBe(0);
    expect(await run(["conform", other.url, ...filter, "--acts", "--behaviors", "none"], recordedIo().io)).toBe(0);
    expect(await run(["conform", other.url, ...filter, "--behaviors", "all"], recordedIo().io)).toBe(1);
  });
});

test("if every test is skipped nothing is proved: it exits with 1", async () => {
  const { io, out } = recordedIo();
  expect(await run(["conform", server.url, "--filter", "CARD-EXT-102"], io)).toBe(1);
  expect(out()).toMatch(/\nUntested: no test ran; \d+ MUST checks that may apply did not run\.\n/);
});

test("a test that the runner interprets itself describes what it tested", async () => {
  const card = "steps: [{ id: a, operation: get_agent_card }]";
  await writeFile(
    join(folder, "reading.acts.yaml"),
    `${header}suites: [{ id: s, name: S, tests: [
      { id: CARD-CACHE-001, name: cached, level: must, tags: [runner-special], ${card} },
      { id: DM-SERIAL-002, name: no answer to a send, level: must, tags: [runner-special], ${card} },
      { id: PLAIN-1, name: plain, level: must, ${card} }] }]`,
  );
  const { io, out } = recordedIo({ cwd: folder });
  const args = ["conform", server.url, "--acts", "reading.acts.yaml", "--binding", "JSONRPC"];
  expect(await run([...args, "--json"], io)).toBe(1);
  const { reports } = JSON.parse(out()) as { reports: { suites: { tests: { reading?: string }[] }[] }[] };
  expect(reports[0]?.suites[0]?.tests.map(({ reading }) => reading)).toEqual([
    "the public card has an ETag, or a Cache-Control with a max-age",
    expect.stringContaining("SendMessageResponse"),
    undefined,
  ]);
  const shown = recordedIo({ cwd: folder });
  expect(await run(args, shown.io)).toBe(1);
  expect(shown.out()).toContain("       interpretation: the response is a valid SendMessageResponse");
});

test("behaviour that a binding cannot show is skipped there, with the reason", async () => {
  const path = join(folder, "headers.acts.yaml");
  await writeFile(
    path,
    `${header}suites: [{ id: s, name: S, tests: [{ id: HEAD-1, name: one, level: must, steps: [
      { id: a, operation: list_tasks, expect: { headers: { content-type: { contains: json } } } }] }] }]`,
  );
  const { io, out } = recordedIo();
  expect(await run(["conform", server.url, "--json", "--acts", path], io)).toBe(0);
  const tests = JSON.parse(out()).reports.map((one: { suites: { tests: object[] }[] }) => one.suites[0]?.tests[0]);
  expect(tests).toMatchObject([
    { result: "pass" },
    { result: "pass" },
    { result: "skip", skip_reason: "this binding does not show response headers" },
  ]);
});

describe("a mistake in a test is not a failure of the server", () => {
  const one = async (steps: string): Promise<{ result: string; failure: { message: string } }> => {
    await writeFile(
      join(folder, "one.acts.yaml"),
      `${header}suites: [{ id: s, name: S, tests: [{ id: ONE-1, name: one, level: must, steps: [${steps}] }] }]`,
    );
    const { io, out } = recordedIo({ cwd: folder });
    await run(["conform", server.url, "--json", "--acts", "one.acts.yaml", "--binding", "JSONRPC"], io);
    return JSON.parse(out()).reports[0].suites[0].tests[0];
  };

  test("an error name that does not exist", async () => {
    const { result, failure } = await one(
      "{ id: a, operation: get_task, params: { id: x }, expect_error: { error_type: BadDayError } }",
    );
    expect({ result, message: failure.message }).toEqual({
      result: "error",
      message: '"BadDayError" is not the name of an error',
    });
  });

  test("a stream that no step has opened", async () => {
    expect(await one("{ id: a, stream: b }")).toMatchObject({ result: "error" });
  });

  test("but a variable that is not set fails its step (ACTS §12.2)", async () => {
    expect(await one('{ id: a, operation: get_task, params: { id: "{{nobody}}" } }')).toMatchObject({
      result: "fail",
      failure: { message: "variable nobody is not set", step_id: "a" },
    });
  });

  test("and so does a capture of a missing value", async () => {
    expect(await one("{ id: a, operation: get_agent_card, capture: { x: no.such } }")).toMatchObject({
      result: "fail",
    });
  });
});
