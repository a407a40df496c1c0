import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@parley/a2a";
import { data, defineAgent, serve, text } from "@parley/node";
import type { Page, Request as PageRequest } from "playwright-core";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { gate } from "../../packages/frameworks/test/gate.ts";
import { reservePort, Supervisor } from "../crash/supervisor.ts";
import { flaws, open, shot } from "./console-page.ts";
import { contents, reactPage, type Initial, type ReactPage, type ReactVersion } from "./react-page.ts";

/** Tests a page with the hooks of `@parley/react`, connected to an agent. */

const versions = [18, 19] as const;
const pages = new Map<ReactVersion, ReactPage>();
beforeAll(async () => {
  for (const version of versions) pages.set(version, await reactPage(version));
}, 60_000);

function pageOf(version: ReactVersion): ReactPage {
  const page = pages.get(version);
  if (page === undefined) throw new Error("The page is not there");
  return page;
}

type OnMessage = Parameters<typeof defineAgent>[0]["onMessage"];

/** Serves an agent and the page. `render` reads the data for the page after the agent is up. */
async function serving(
  onMessage: OnMessage,
  version: ReactVersion = 19,
  read: (origin: string) => Promise<Initial | undefined> = () => Promise.resolve(undefined),
): Promise<string> {
  const agent = defineAgent({
    name: "Talker",
    description: "Talks.",
    version: "1.0.0",
    skills: [],
    defaultInputModes: ["text/plain", "application/json"],
    onMessage,
  });
  let files: ReturnType<typeof contents> = {};
  const server = await serve(agent, {
    port: 0,
    logger: false,
    routes: (request) => {
      const [type = "", body] = files[new URL(request.url).pathname] ?? [];
      return body === undefined ? undefined : new Response(body, { headers: { "content-type": type } });
    },
  });
  onTestFinished(() => server.close({ grace: 0 }));
  const { origin } = new URL(server.url);
  files = contents(pageOf(version), await read(origin));
  return `${origin}/chat`;
}

interface Counted {
  /** The number of the page's calls by operation, with card fetches as `card`. */
  readonly calls: Map<string, number>;
  /** The streams that are open. */
  readonly streams: Set<PageRequest>;
}

function counted(page: Page): Counted {
  const calls = new Map<string, number>();
  const streams = new Set<PageRequest>();
  page.on("request", (request) => {
    const name = request.url().includes("/.well-known/") ? "card" : operationOf(request);
    if (name === undefined) return;
    calls.set(name, (calls.get(name) ?? 0) + 1);
    if (name === "SubscribeToTask") streams.add(request);
  });
  page.on("requestfailed", (request) => streams.delete(request));
  page.on("requestfinished", (request) => streams.delete(request));
  return { calls, streams };
}

function operationOf(request: PageRequest): string | undefined {
  return request.method() === "POST" ? (request.postDataJSON() as { readonly method: string }).method : undefined;
}

async function opened(url: string): Promise<Awaited<ReturnType<typeof open>> & Counted> {
  const counts: Counted[] = [];
  const prepare = async (page: Page): Promise<void> => void counts.push(counted(page));
  const result = await open(url, { ready: "h1", prepare });
  const [count = counted(result.page)] = counts;
  return { ...result, ...count };
}

async function say(page: Page, message: string): Promise<void> {
  await page.fill("[aria-label=Message]", message);
  await page.keyboard.press("Enter");
}

const answers = (page: Page): Promise<string[]> => page.locator("article.assistant .text").allTextContents();
const asked = (page: Page): Promise<string[]> => page.locator("article.user").allInnerTexts();
const ready = "main[data-status=ready]";

/** Returns the words of an answer, and a stream of them that waits for a gate after the first `before` words. */
function halves(
  before: number,
  count: number,
): {
  readonly words: readonly string[];
  readonly rest: ReturnType<typeof gate>;
  stream(): AsyncGenerator<string>;
} {
  const words = Array.from({ length: count }, (_, at) => `word ${at}, `);
  const rest = gate();
  return {
    words,
    rest,
    async *stream() {
      yield* words.slice(0, before);
      await rest.opened;
      yield* words.slice(before);
    },
  };
}

describe.each(versions)("React %s", (version) => {
  test("renders at most once per frame during 10,000 chunks, with one stream for two components", async () => {
    const { words, rest, stream } = halves(1_000, 11_000);
    const url = await serving(async function* (turn) {
      // Makes each word a separate event, because `turn.stream()` would join words.
      const whole = turn.artifact({ parts: [text("Begin: ")], open: true });
      yield whole;
      for await (const word of stream()) yield turn.append(whole.artifact.artifactId, [text(word)]);
    }, version);
    const { page, noise, calls } = await opened(url);
    await say(page, "Count");
    await page.waitForSelector("text=word 999,");
    rest.open();
    await page.waitForSelector(`${ready} .length[data-status=ready]`);
    const whole = `Begin: ${words.join("")}`;
    expect(await answers(page)).toEqual([whole]);
    expect(await page.locator(".length").allInnerTexts()).toEqual([`${whole.length} characters`]);
    const {
      frames = 0,
      conversation = 0,
      task = 0,
      events = 0,
    } = await page.evaluate<Record<string, number>>("measured()");
    expect(events).toBeGreaterThan(10_000);
    expect(task).toBeGreaterThan(1);
    // The other renders come from mounting (twice in strict mode), and from the message before the agent accepted it.
    expect(conversation).toBeLessThanOrEqual(frames + 8);
    expect(task).toBeLessThanOrEqual(frames + 4);
    expect(Object.fromEntries(calls)).toEqual({ card: 1, SendMessage: 1, SubscribeToTask: 1 });
    expect(noise).toEqual([]);
  });

  test("hydrates the server's data without another request", async () => {
    const onMessage: OnMessage = async function* (turn) {
      yield turn.artifact({ parts: [text(`It rains in ${turn.text} </script>`)] });
    };
    const url = await serving(onMessage, version, async (origin) => {
      const client = await connect(origin);
      const { task } = await client.sendMessage("Basel");
      return { card: client.card, tasks: task === undefined ? [] : [task] };
    });
    expect(await (await fetch(url)).text()).toContain("It rains in Basel");
    const { page, noise, calls } = await opened(url);
    await page.waitForSelector(`${ready} .length`);
    expect(await answers(page)).toEqual(["It rains in Basel </script>"]);
    expect(Object.fromEntries(calls)).toEqual({});
    await say(page, "Bern");
    await page.waitForSelector(`${ready} >> text=It rains in Bern`);
    expect(Object.fromEntries(calls)).toMatchObject({ SendMessage: 1 });
    expect(calls.get("card")).toBe(undefined);
    expect(await asked(page)).toEqual(["Basel", "Bern"]);
    expect(noise).toEqual([]);
  });
});

describe("useConversation()", () => {
  test("neither loses nor duplicates a character when reloaded mid-stream", async () => {
    const { words, rest, stream } = halves(200, 400);
    const url = await serving(async function* (turn) {
      yield turn.working("Looking");
      yield* turn.stream(stream());
      yield turn.artifact({ name: "Table", parts: [data({ words: words.length })] });
    });
    const { page, noise } = await opened(url);
    await say(page, "Count");
    await page.waitForSelector("text=word 199");
    await page.reload();
    await page.waitForSelector("main[data-status=streaming] >> text=word 199");
    await page.waitForSelector("h1");
    expect(await asked(page)).toEqual(["Count"]);
    await shot(page, "useConversation after a reload");
    rest.open();
    await page.waitForSelector(`${ready} article.assistant code`);
    for (const time of ["live", "again"]) {
      expect(await answers(page), time).toEqual([words.join("")]);
      expect(await page.locator("article.assistant code").allTextContents(), time).toEqual(['{"words":400}']);
      await page.reload();
      await page.waitForSelector(`${ready} article.assistant code`);
    }
    await page.waitForSelector("h1");
    expect(await flaws(page)).toEqual([]);
    expect(noise).toEqual([]);
  });

  test("answers a question, approves tool calls, and shows an authorization", async () => {
    const approvals = ["a1", "a2"].map((approvalId) => ({
      approvalId,
      toolCallId: `call-${approvalId}`,
      toolName: "pay",
      input: { euros: 5 },
      digest: `d-${approvalId}`,
    }));
    const url = await serving(async function* (turn) {
      if (turn.number === 1) return yield turn.inputRequired("For whom?");
      if (turn.number === 2) return yield turn.inputRequired([text(`Pay ${turn.text}?`), data({ approvals })]);
      yield* turn.authorize({ form: "approval", reason: "Open the safe" });
      yield turn.completed(`Paid: ${JSON.stringify(turn.message.parts.map((part) => part.data))}`);
    });
    const { page, noise } = await opened(url);
    await say(page, "Pay");
    await page.waitForSelector(`${ready} >> text=For whom?`);
    await say(page, "Ada");
    await page.waitForSelector(`${ready} fieldset >> text=pay`);
    expect(await page.locator("article").allInnerTexts()).toEqual(["Pay", "For whom?", "Ada", "Pay Ada?"]);
    await page.reload();
    await page.click("text=Approve a1");
    await page.waitForSelector('text={"euros":5} true');
    await shot(page, "useConversation with approvals");
    await page.click("text=Deny a2");
    const link = await page.waitForSelector(`fieldset a`);
    const href = await link.getAttribute("href");
    const safe = await page.context().newPage();
    await safe.goto(href ?? "");
    await safe.click("button >> nth=0");
    await page.waitForSelector(`${ready} >> text=Paid`);
    const answer =
      '[{"approvalId":"a1","approved":true,"digest":"d-a1"},{"approvalId":"a2","approved":false,"reason":"No","digest":"d-a2"}]';
    expect((await page.locator("article.assistant").allInnerTexts()).at(-1)).toContain(`Paid: ${answer}`);
    const shown = await page.locator("article").allInnerTexts();
    await page.reload();
    await page.waitForSelector(`${ready} >> text=Paid`);
    expect(await page.locator("article").allInnerTexts()).toEqual(shown);
    expect(noise).toEqual([]);
  });

  test("stops the agent, shows why a task failed, and sends the message again", async () => {
    const stopped = gate();
    let attempts = 0;
    const url = await serving(async function* (turn) {
      if (turn.text === "fail" && ++attempts === 1) return yield turn.failed("The station is closed");
      if (turn.text === "fail") return yield turn.completed("The station is open");
      yield turn.working("Looking");
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      stopped.open();
    });
    const { page, noise, streams } = await opened(url);
    await say(page, "wait");
    await page.waitForSelector("text=Looking");
    await page.click("text=stop");
    await stopped.opened;
    await page.waitForSelector(ready);
    await expect.poll(() => streams.size).toBe(0);
    await say(page, "fail");
    await page.waitForSelector("main[data-status=error] [role=alert] >> text=The station is closed");
    await page.click("text=clearError");
    await page.waitForSelector(ready);
    await page.click("text=regenerate");
    await page.waitForSelector(`${ready} >> text=The station is open`);
    expect(await asked(page)).toEqual(["wait", "fail", "fail"]);
    expect(noise).toEqual([]);
  });

  test("ends the stream when it unmounts, but not the task", async () => {
    const { words, rest, stream } = halves(10, 20);
    const url = await serving(async function* (turn) {
      yield* turn.stream(stream());
    });
    const { page, noise, calls, streams } = await opened(url);
    await say(page, "Count");
    await page.waitForSelector("text=word 9");
    expect(streams.size).toBe(1);
    await page.click("text=Toggle");
    await expect.poll(() => streams.size).toBe(0);
    rest.open();
    await page.click("text=Toggle");
    await page.waitForSelector(`${ready} >> text=word 19`);
    expect(await answers(page)).toEqual([words.join("")]);
    expect(calls.get("SubscribeToTask")).toBe(2);
    expect(calls.get("CancelTask")).toBe(undefined);
    expect(noise).toEqual([]);
  });

  test("retries a message that was in flight during a reload, and the agent runs it once", async () => {
    const heard: string[] = [];
    const url = await serving(async function* (turn) {
      heard.push(turn.text);
      yield turn.completed(`Heard ${turn.text}`);
    });
    const { page, noise } = await opened(url);
    const arrived = gate();
    await page.route("**/*", async (route) => {
      if (operationOf(route.request()) !== "SendMessage" || heard.length > 0) return route.continue();
      // The agent gets the message, but the page never gets the answer.
      await route.fetch();
      arrived.open();
    });
    await say(page, "Hello");
    await arrived.opened;
    await page.reload();
    await page.waitForSelector(`${ready} >> text=Heard Hello`);
    expect(await asked(page)).toEqual(["Hello"]);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.reload();
    await page.waitForSelector(`${ready} >> text=Heard Hello`);
    expect(await asked(page)).toEqual(["Hello"]);
    expect(heard).toEqual(["Hello"]);
    expect(noise).toEqual([]);
  });

  test("continues after the agent's process dies mid-stream", async () => {
    const folder = await mkdtemp(join(tmpdir(), "parley-react-"));
    const path = join(folder, "tasks.db");
    await writeFile(`${path}.lives`, "0");
    const script = join(import.meta.dirname, "..", "crash", "text-server.ts");
    const supervisor = new Supervisor(path, await reservePort(), script);
    onTestFinished(async () => {
      supervisor.stop();
      await rm(folder, { recursive: true });
    });
    const life = await supervisor.start();
    const files = contents(pageOf(19));
    const prepare = async (page: Page): Promise<void> => {
      await page.route(/\/(?:chat|page\.js)$/, (route) => {
        const [contentType = "", body = ""] = files[new URL(route.request().url()).pathname] ?? [];
        return route.fulfill({ contentType, body });
      });
    };
    const { page } = await open(`${supervisor.url}/chat`, { ready: "h1", prepare });
    await say(page, "other");
    await page.waitForSelector("text=It is certain");
    life.kill("SIGKILL");
    await life.end;
    await supervisor.start();
    await page.waitForSelector(`${ready} >> text=It is doubtful at best.`);
    expect(await answers(page)).toEqual(["It is doubtful at best."]);
    expect(await asked(page)).toEqual(["other"]);
  });
});

describe("useAgentCard()", () => {
  test("throws to the error boundary while the agent is unreachable, and reconnects", async () => {
    const url = await serving(() => {});
    let isAway = true;
    const prepare = async (page: Page): Promise<void> => {
      await page.route("**/.well-known/*", (route) => (isAway ? route.fulfill({ status: 404 }) : route.continue()));
    };
    const { page } = await open(url, { ready: "text=Try again", prepare });
    isAway = false;
    await page.click("text=Try again");
    await page.waitForSelector("h1 >> text=Talker");
  });
});
