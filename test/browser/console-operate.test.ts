import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Locator, Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { connect } from "@parley/a2a";
import { bearer } from "@parley/a2a/auth";
import { defineAgent, memoryStore, serve, type ServeOptions, type Server } from "@parley/node";
import { drawnInFrame, fits, flaws, loaded, open, shot, show } from "./console-page.ts";

/* Tests the operators' console in a real browser: the stored timeline of a task, tasks of all owners, and acts. */

/** A hostile name for steps and artifacts. */
const payload = `<img src=x onerror="alert(1)"><script>alert(1)</script>`;

interface Served {
  readonly server: Server;
  readonly store: ReturnType<typeof memoryStore>;
  /** Ends the step `hold`. */
  release(): void;
}

/** Serves a planner that delegates to a helper, and runs steps and waits according to the message. */
async function serving(options: ServeOptions = {}): Promise<Served> {
  const store = memoryStore();
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const common = { description: "For tests.", version: "1.0.0", skills: [], resumable: true, mayReplyDirectly: false };
  const helper = defineAgent({
    ...common,
    name: "Helper",
    async *onMessage(turn) {
      await turn.step("dig", () => "found");
      yield turn.completed(`Helper did ${turn.text}`);
    },
  });
  const planner = defineAgent({
    ...common,
    name: "Planner",
    async *onMessage(turn) {
      const count = Number(/^count to (\d+)$/.exec(turn.text)?.[1] ?? 0);
      for (let n = 1; n <= count; n++) {
        const part = [{ text: `${n} ` }];
        yield n === 1
          ? turn.artifact({ artifactId: "numbers", parts: part, open: true })
          : turn.append("numbers", part, { last: n === count });
      }
      if (turn.text === "hold") yield turn.working("On it");
      if (turn.text === "hold") await turn.step("hold", () => held);
      if (turn.text === "fail") throw new Error("no");
      if (turn.text === "ask") return yield turn.inputRequired("Window or aisle?");
      if (turn.text === "hostile") {
        await turn.step(payload, () => 1);
        yield turn.artifact({ artifactId: payload, parts: [{ text: "x" }] });
      }
      if (turn.text === "plan") {
        await turn.step("look", () => "found");
        const client = await connect(`${server.url}/helper`);
        const { text } = yield* turn.delegate(client, "the digging");
        yield turn.artifact({ artifactId: "plan", parts: [{ text }] });
        yield* turn.waitFor("paid");
      }
      yield turn.completed("It is planned");
    },
  });
  const mounts = [
    { agent: planner, path: "/planner", id: "planner" },
    { agent: helper, path: "/helper", id: "helper" },
  ];
  const server: Server = await serve(mounts, {
    port: 0,
    store,
    logger: false,
    signals: false,
    console: true,
    operators: true,
    lease: { ttl: 500 },
    ...options,
  });
  onTestFinished(() => server.close({ grace: 0 }));
  return { server, store, release };
}

async function begun({ url }: Server, text: string, path = "/planner"): Promise<string> {
  const client = await connect(url + path);
  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER" as const, parts: [{ text }] };
  const { task } = await client.sendMessage({ message, configuration: { returnImmediately: true } });
  return task?.id ?? "";
}

const rows = (page: Page): Promise<readonly string[]> => page.locator(".rows .row .clip").allTextContents();

/** Waits until the timeline's list has a matching row. */
const hasRow = (page: Page, like: RegExp): Promise<void> =>
  expect.poll(async () => (await rows(page)).join("\n")).toMatch(like);

/** Selects half of the chart by dragging with Shift, which zooms to it. */
async function brushed(page: Page): Promise<void> {
  const view = async (): Promise<number> =>
    Number(/([\d.]+) s in view/.exec((await page.locator(".timeline .tools").textContent()) ?? "")?.[1]);
  const { x, y, width } = (await page.locator("canvas").boundingBox()) ?? { x: 0, y: 0, width: 0 };
  await page.keyboard.down("Shift");
  await page.mouse.move(x + width * 0.5, y + 10);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.6, y + 10);
  await page.mouse.move(x + width * 0.75, y + 10);
  await page.waitForSelector(".brush", { state: "attached" });
  const before = await view();
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await page.waitForSelector(".brush", { state: "detached" });
  expect(await view()).toBeLessThan(before / 2);
  await page.click("text=Fit");
}

describe("the timeline of a task", () => {
  test.each([
    [1200, "light"],
    [380, "dark"],
  ] as const)(
    "shows the stored runs, steps, waits, states, artifacts and delegated tasks: %i pixels, %s",
    async (width, theme) => {
      const { server } = await serving();
      const taskId = await begun(server, "plan");
      const { page, noise } = await open(`${server.url}/console/#/timeline/planner/${taskId}`, { width, theme });
      await page.waitForSelector("text=The task waits for the event");
      await hasRow(page, /Runs turn 1, attempt 1/);
      await hasRow(page, /Steps look/);
      await hasRow(page, /Waits The task waits for the event "paid"/);
      await hasRow(page, /Status working \(\d+\)/);
      await hasRow(page, /Artifact plan plan \(\d+\)/);
      await hasRow(page, /↳ Helper task \S+ of Helper: done/);
      await hasRow(page, /Steps dig/);
      await brushed(page);
      await page.locator(".rows .row", { hasText: "Artifact plan" }).click();
      const entry = JSON.parse((await page.locator(".detail pre").textContent()) ?? "") as object;
      expect(entry).toMatchObject({ kind: "artifactUpdate", artifactId: "plan", turn: 1, attempt: 1 });
      expect(await flaws(page)).toEqual([]);
      expect(await fits(page)).toBe(true);
      await shot(page, `Timeline of a task-${width}-${theme}`);
      expect(noise).toEqual([]);
    },
  );

  test("shows a crash, and which node took over the task", async () => {
    const { server, store } = await serving();
    const ops = (act: string): Promise<Response> =>
      fetch(`${server.url}/ops/v1/acts/${act}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ agent: "planner" }),
      });
    await ops("pause");
    const taskId = await begun(server, "hello");
    const owner = (await store.head({ agent: "planner" }, taskId))?.task.owner ?? "";
    const run = { turn: 1, attempt: 1, input: 1 } as const;
    const leave = { effect: "feature", op: "delete", feature: "queue", key: "run" } as const;
    const lease = { effect: "lease", op: "acquire", holder: "node-that-died", now: 1, until: 2 } as const;
    const task = { agent: "planner", owner, taskId };
    await store.append([{ task, records: [], effects: [{ effect: "run", run }, leave, lease] }]);
    await ops("unpause");
    const { page } = await open(`${server.url}/console/#/timeline/planner/${taskId}`);
    await hasRow(page, /Takeovers taken over from node-that-died by \S+/);
    await hasRow(page, /Runs turn 1, attempt 1 on node-that-died: crashed or hung/);
    await hasRow(page, /Runs turn 1, attempt 2 on \S+/);
    await hasRow(page, /Status completed/);
    await shot(page, "Timeline of a takeover");
  });

  test("draws a log of 100,000 entries with few elements, and each pixel once", async () => {
    const { server } = await serving();
    const taskId = await begun(server, "count to 100000");
    const { page } = await open(`${server.url}/console/#/timeline/planner/${taskId}`);
    await expect
      .poll(() => page.locator(".tools .quiet").first().textContent(), { timeout: 120_000 })
      .toMatch(/^100,0\d\d events/);
    expect(await drawnInFrame(page)).toBeLessThan(6 * 1200);
    expect(await page.locator("*").count()).toBeLessThan(1_000);
  });

  test("shows names of steps and artifacts as text, whatever they contain", async () => {
    const { server } = await serving();
    const taskId = await begun(server, "hostile");
    const { page, noise } = await open(`${server.url}/console/#/timeline/planner/${taskId}`);
    await hasRow(page, /Steps <img src=x/);
    await page.goto(`${server.url}/console/#/operate/planner/${taskId}`);
    await page.waitForSelector("text=Newest entries");
    expect(await page.evaluate("document.querySelectorAll('main img, body script:not([src])').length")).toBe(0);
    expect(noise).toEqual([]);
  });
});

describe("tasks of all owners", () => {
  test.each([
    [1200, "light"],
    [380, "dark"],
  ] as const)(
    "are listed and filtered, with the reason for waiting and the command that helps: %i pixels, %s",
    async (width, theme) => {
      const { server, release } = await serving();
      onTestFinished(release);
      const waiting = await begun(server, "plan");
      const held = await begun(server, "hold");
      const { page, noise } = await open(`${server.url}/console/`, { width, theme });
      await show(page, "Operate");
      await page.waitForSelector(`.list >> text=${held}`);
      await page.waitForSelector("section[aria-label='Agents and nodes'] >> text=Drain");
      await loaded(page);
      expect(await flaws(page)).toEqual([]);
      expect(await fits(page)).toBe(true);
      await shot(page, `Operate-${width}-${theme}`);
      await page.selectOption("select[aria-label=Agent]", "helper");
      await expect.poll(() => page.locator(".list li").count()).toBe(1);
      await page.selectOption("select[aria-label=Agent]", "planner");
      await page.click(`.list >> text=${waiting}`);
      await page.waitForSelector("text=The task waits for the event");
      await page.waitForSelector(`.detail pre >> text=parley ops drop-wait ${waiting}`);
      expect(await flaws(page)).toEqual([]);
      expect(await fits(page)).toBe(true);
      await shot(page, `Operated task-${width}-${theme}`);
      await page.click("button >> text=Drop wait");
      await page.waitForSelector(`dialog pre >> text=parley ops drop-wait ${waiting}`);
      await page.fill("dialog input[name=reason]", "it's paid");
      await page.waitForSelector("dialog pre >> text=--reason 'it'\\''s paid'");
      expect(await flaws(page)).toEqual([]);
      await shot(page, `Confirm-${width}-${theme}`);
      await page.click("dialog button >> text=Confirm");
      await page.waitForSelector(".detail >> text=The task is over: completed");
      await page.waitForSelector(".detail >> text=it's paid");
      expect(noise).toEqual([]);
    },
  );

  test("are found by their ID, even if the page does not list them, and by their owner", async () => {
    const { server, release } = await serving();
    onTestFinished(release);
    const held = await begun(server, "hold");
    const done = await begun(server, "hello", "/helper");
    const { page } = await open(`${server.url}/console/#/operate`);
    await expect.poll(() => page.locator(".list li").count()).toBe(2);
    await page.fill("input[type=search]", held);
    await expect.poll(() => page.locator(".list li").count()).toBe(1);
    await page.selectOption("select[aria-label=State]", "TASK_STATE_WORKING");
    await page.fill("input[type=search]", done);
    await page.click("text=Find the task with this ID");
    await page.waitForSelector(".detail >> text=The task is over: completed");
    await page.fill("input[type=search]", "no-such-task");
    await page.click("text=Find the task with this ID");
    await page.waitForSelector("text=No agent of the server has a task no-such-task");
    await page.fill("input[type=search]", "");
    await page.click("text=List only tasks of this owner");
    await page.waitForSelector(".list header >> text=Owner anonymous");
    await page.waitForSelector(".list li >> text=· anonymous");
    await page.waitForSelector(".detail dd >> text=anonymous");
    expect(await page.textContent("main")).not.toContain("[null");
    await page.click(".list header >> text=Owner anonymous");
    await page.waitForSelector(".list header >> text=Owner anonymous", { state: "detached" });
  });

  test("show their question, which their owner answers there", async () => {
    const { server } = await serving();
    const taskId = await begun(server, "ask");
    const { page, noise } = await open(`${server.url}/console/#/operate/planner/${taskId}`);
    const question = page.locator(".detail section[aria-label=Question]");
    await expect.poll(() => question.textContent()).toContain("Window or aisle?");
    expect(await page.locator(".detail").textContent()).toMatch(/message of its owner Since .+ \(\d+ s\)/);
    expect(await flaws(page)).toEqual([]);
    await shot(page, "Operated question");
    await question.locator("textarea").fill("Aisle");
    await question.locator("button").click();
    await page.waitForSelector(".detail >> text=The task is over: completed");
    await expect.poll(() => question.count()).toBe(0);
    expect(noise).toEqual([]);
  });

  test("say whose their question is, where the user of the console does not own them", async () => {
    const { server } = await serving({
      authenticator: bearer({ "token-of-ada": { subject: "ada" }, "token-of-bob": { subject: "bob" } }),
    });
    const client = await connect(`${server.url}/planner`, { headers: { authorization: "Bearer token-of-bob" } });
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER" as const, parts: [{ text: "ask" }] };
    const { task } = await client.sendMessage({ message, configuration: { returnImmediately: true } });
    const { page } = await open(`${server.url}/console/#/operate/planner/${task?.id ?? ""}`, { ready: "form.connect" });
    await page.fill("input[name=secret]", "token-of-ada");
    await page.click("button >> text=Sign in");
    await page.waitForSelector(".detail >> text=Only bob can read the question and answer it.");
    expect(await page.locator("main").textContent()).not.toContain("Window");
  });

  test("of a paused agent say since when, by whom and why, and waiting ones what they wait for", async () => {
    const { server } = await serving({
      operators: { authenticator: bearer({ "token-of-eve": { subject: "eve" } }), authorize: () => true },
    });
    const waiting = await begun(server, "plan");
    const headers = { authorization: "Bearer token-of-eve", "content-type": "application/json" };
    const body = JSON.stringify({ agent: "planner", reason: "bad prompt" });
    expect((await fetch(`${server.url}/ops/v1/acts/pause`, { method: "POST", headers, body })).status).toBe(200);
    const queued = await begun(server, "hello");
    const { page } = await open(`${server.url}/console/#/operate/planner/${queued}`);
    await page.fill(".operator input[name=secret]", "token-of-eve");
    await page.click(".operator button");
    await page.waitForSelector(".detail >> text=Agent planner is paused by eve: bad prompt");
    await page.waitForSelector(".detail p .quiet time");
    await page.waitForSelector(`.list li:has-text("${queued}") >> text=waits for a node ·`);
    await page.waitForSelector(`.list li:has-text("${waiting}") >> text=waits for a time or an event ·`);
    expect(await flaws(page)).toEqual([]);
    await shot(page, "Operated paused");
    await page.click("text=Agents and nodes");
    await page.waitForSelector(
      "section[aria-label='Agents and nodes'] td >> text=/^paused since .+ by eve: bad prompt$/",
    );
    expect(await flaws(page)).toEqual([]);
  });

  test("reject an act if they changed meanwhile, and show their current state", async () => {
    const { server, release } = await serving();
    const taskId = await begun(server, "hold");
    const { page } = await open(`${server.url}/console/#/operate/planner/${taskId}`);
    await page.waitForSelector(".detail >> text=in step");
    await page.click(".detail button >> text=Cancel");
    await page.waitForSelector("dialog >> text=is working, entry");
    release();
    const client = await connect(`${server.url}/planner`);
    await expect.poll(async () => (await client.getTask(taskId)).status.state).toBe("TASK_STATE_COMPLETED");
    await page.click("dialog button >> text=Confirm");
    await page.waitForSelector("dialog [role=alert] >> text=The task is now completed");
    await shot(page, "Rejected");
    await page.click("dialog button >> text=Back");
    await page.waitForSelector("dialog", { state: "detached" });
  });

  test("can be resumed, their agents paused and their nodes drained", async () => {
    const { server } = await serving();
    const failed = await begun(server, "fail");
    const { page } = await open(`${server.url}/console/#/operate/planner/${failed}`);
    await page.waitForSelector(".detail >> text=The task is over: failed");
    await page.click(".detail button >> text=Resume");
    await page.click("dialog button >> text=Confirm");
    await expect.poll(() => page.locator(".list li").count()).toBe(2);
    await page.click("text=Agents and nodes");
    for (const [act, undo] of [
      ["Pause planner", "Unpause planner"],
      ["Drain ", "Undrain "],
    ] as const) {
      await page.click(`button[aria-label^="${act}"]`);
      await page.click("dialog button >> text=Confirm");
      await page.click(`button[aria-label^="${undo}"]`);
      await page.click("dialog button >> text=Confirm");
      await page.waitForSelector(`button[aria-label^="${act}"]`);
    }
    const acts = (await (await fetch(`${server.url}/ops/v1/acts`)).json()) as {
      readonly acts: readonly { readonly act: string }[];
    };
    expect(acts.acts.map(({ act }) => act)).toEqual(["undrain", "drain", "unpause", "pause", "resume"]);
  });

  test("are counted on the tab if they are suspended or failed in the last 24 hours", async () => {
    const { server, store } = await serving();
    await begun(server, "fail");
    const { page, noise } = await open(`${server.url}/console/`);
    const badge = page.locator("nav.screens .badge");
    await expect.poll(() => badge.getAttribute("aria-label")).toBe("Tasks: 1 failed in the last 24 hours");
    const taskId = await begun(server, "plan");
    await expect.poll(async () => (await store.head({ agent: "planner" }, taskId))?.run).toBeUndefined();
    const owner = (await store.head({ agent: "planner" }, taskId))?.task.owner ?? "";
    const run = { turn: 1, attempt: 3, input: 1, deaths: 3, suspended: true } as const;
    await store.append([{ task: { agent: "planner", owner, taskId }, records: [], effects: [{ effect: "run", run }] }]);
    await show(page, "Operate");
    await page.click("button[aria-label='Pause helper']");
    await page.click("dialog button >> text=Confirm");
    await expect.poll(() => badge.getAttribute("aria-label")).toBe("Tasks: 1 suspended, 1 failed in the last 24 hours");
    expect(await badge.textContent()).toBe("2");
    expect(await flaws(page)).toEqual([]);
    await shot(page, "Operate badge");
    expect(noise).toEqual([]);
  });

  test("require an operator's credentials, and reject a user's", async () => {
    const users = bearer({ "token-of-a-user": { subject: "ada" } });
    const operators = {
      authenticator: bearer({ "token-of-an-operator": { subject: "eve" } }),
      authorize: () => true,
    };
    const { server } = await serving({ authenticator: users, operators });
    const { page, noise } = await open(`${server.url}/console/`, { ready: "form.connect" });
    await page.fill("input[name=secret]", "token-of-a-user");
    await page.click("button >> text=Sign in");
    await page.waitForSelector("nav.screens >> text=Operate");
    // The page did not call the operators' API with the user's credentials.
    expect(noise.filter((text) => text.includes("401") || text.includes("403"))).toHaveLength(1);
    await show(page, "Operate");
    await page.waitForSelector("text=Sign in as an operator");
    expect(await flaws(page)).toEqual([]);
    await shot(page, "Sign in as an operator");
    await page.fill(".operator input[name=secret]", "token-of-an-operator");
    await page.click(".operator button");
    await page.waitForSelector("text=No tasks match.");
    await page.reload();
    await page.waitForSelector("text=No tasks match.");
  });
});

/** Runs `parley inspect`. Returns the command's output. */
async function inspecting(...args: readonly string[]): Promise<{ readonly url: string; readonly webhooks?: string }> {
  const program = join(import.meta.dirname, "..", "..", "packages", "cli", "dist", "main.js");
  const child = spawn(process.execPath, [program, "inspect", ...args, "--no-open", "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PARLEY_KEYCHAIN: "off" },
  });
  onTestFinished(async () => {
    child.kill();
    if (child.exitCode === null) await once(child, "exit");
  });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return JSON.parse(line) as { readonly url: string; readonly webhooks?: string };
}

test("parley inspect relays the operators' API with credentials that the page never sees, and shows webhooks", async () => {
  const secret = "token-of-an-operator";
  const operators = { authenticator: bearer({ [secret]: { subject: "eve" } }), authorize: () => true };
  const { server } = await serving({ operators, console: false, push: true });
  const waiting = await begun(server, "plan");
  const printed = await inspecting(
    `${server.url}/planner`,
    "--operators",
    `${server.url}/ops`,
    "--operators-token",
    secret,
    "--webhooks",
  );
  const { page, noise } = await open(printed.url);
  const seen: string[] = [];
  page.on(
    "response",
    (response) =>
      void response
        .text()
        .then((text) => seen.push(text))
        .catch(() => {}),
  );
  await show(page, "Operate");
  await page.click(`.list >> text=${waiting}`);
  await page.waitForSelector(".detail >> text=The task waits for the event");
  await page.click(".detail >> text=Timeline");
  await hasRow(page, /Steps look/);

  const { webhooks = "" } = printed;
  const headers = {
    "content-type": "application/json",
    authorization: "Bearer s3cret-of-the-sender",
    "x-note": "shown",
  };
  const event = { statusUpdate: { taskId: waiting, status: { state: "TASK_STATE_WORKING" } } };
  expect((await fetch(webhooks, { method: "POST", headers, body: JSON.stringify(event) })).status).toBe(204);
  expect((await fetch(webhooks.slice(0, -1), { method: "POST", headers, body: "{}" })).status).toBe(404);
  const challenge = await fetch(webhooks, { method: "POST", headers, body: `{"challenge":"abc"}` });
  expect(await challenge.json()).toEqual({ challenge: "abc" });
  expect((await fetch(webhooks, { method: "POST", headers, body: "x".repeat((1 << 20) + 1) })).status).toBe(413);
  await hasRow(page, /Webhooks received working/);
  await show(page, "Wire");
  await page.selectOption("select[aria-label=Operation]", "webhook");
  await page.locator(".list li a").last().click();
  const detail = page.locator(".detail");
  await expect.poll(() => detail.textContent()).toContain("statusUpdate");
  const shown = (await detail.textContent()) ?? "";
  expect(shown).toContain("shown");
  expect(shown + seen.join("")).not.toMatch(/s3cret-of-the-sender|token-of-an-operator/);
  await shot(page, "Webhook");

  // Sends the same delivery twice, as if the first answer was lost.
  for (const [sequence, attempt] of [
    [1, 1],
    [2, 1],
    [2, 2],
  ] as const) {
    const id = { "webhook-id": `config_${sequence}_7`, "parley-attempt": `${attempt}` };
    await fetch(webhooks, { method: "POST", headers: { ...headers, ...id }, body: JSON.stringify(event) });
  }
  await page.locator(".list li a", { hasText: "event 2 · attempt 2" }).click();
  const table = page.locator("[role=group][aria-label='Deliveries of this webhook']");
  const cells = (row: Locator): Promise<readonly string[]> => row.locator("td").allTextContents();
  await expect
    .poll(async () =>
      (await Promise.all((await table.locator("tbody tr").all()).map(cells))).map((row) => row.slice(1)),
    )
    .toEqual([
      ["2", "2", "204"],
      ["2", "1", "204"],
      ["1", "1", "204"],
    ]);
  expect(await table.locator("time").first().getAttribute("title")).toMatch(/ \(\d{4}-.*Z\)$/);
  expect(await flaws(page)).toEqual([]);
  await shot(page, "Deliveries");
  expect(noise).toEqual([]);
});

test("failed webhook deliveries appear in the timeline and on the task's screen", async () => {
  const receiver = createServer((_request, response) => response.writeHead(500).end());
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  onTestFinished(() => void receiver.close());
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  const { server } = await serving({ push: true });
  const client = await connect(`${server.url}/planner`);
  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER" as const, parts: [{ text: "plan" }] };
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { url, token: "secret" } };
  const { task } = await client.sendMessage({ message, configuration });
  const { page } = await open(`${server.url}/console/#/operate/planner/${task?.id ?? ""}`);
  await page.waitForSelector(`.detail table >> text=${url}`);
  await page.waitForSelector(".detail table >> text=500");
  await page.click(".detail >> text=Timeline");
  await hasRow(page, /Webhook 127.0.0.1:\d+\/hook \d+ attempts failed: .*500.*; next at /);
});
