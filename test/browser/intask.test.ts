import { existsSync } from "node:fs";
import { defineAgent, memoryStore, serve, type Server, type Turn } from "@parley/node";
import { connect, readAuthorization, text } from "@parley/a2a";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { startProvider } from "../identity/provider.ts";

/* Tests the pages of in-task authorization in a real browser, which sends its own headers and keeps cookies (A2A 1.0 §7.6). */

const places = [
  process.env["CHROMIUM_PATH"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

let browser: Browser;
beforeAll(async () => {
  const executablePath = places.find((place) => place !== undefined && existsSync(place));
  if (executablePath === undefined)
    throw new Error("No Chromium here: install one, or name its program in CHROMIUM_PATH");
  browser = await chromium.launch({
    executablePath,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
  });
}, 120_000);
afterAll(() => browser.close());

/** Starts a server with default options whose agent asks. The result includes the answers that the agent got. */
async function asking(ask: (turn: Turn) => AsyncGenerator<unknown, unknown, void>) {
  const got: unknown[] = [];
  const agent = defineAgent({
    name: "Shop",
    description: "Buys",
    version: "1",
    skills: [],
    async *onMessage(turn) {
      got.push(yield* ask(turn) as ReturnType<Turn["authorize"]>);
      yield turn.artifact({ parts: [text("done")] });
    },
  });
  const server = await serve(agent, { port: 0, store: memoryStore(), logger: false });
  onTestFinished(() => server.close());
  return { server, got };
}

async function linkOf(server: Server) {
  const client = await connect(server.url);
  const { task } = await client.sendMessage("Buy");
  const state = async () => (await client.getTask(task?.id ?? "")).status.state;
  return { url: readAuthorization(task?.status.message)?.url ?? "", state };
}

async function open(url: string): Promise<Page> {
  const page = await browser.newPage();
  onTestFinished(() => page.close());
  await page.goto(url);
  return page;
}

describe("the authorization page", () => {
  test("accepts consent", async () => {
    const { server, got } = await asking((turn) => turn.authorize({ form: "approval", reason: "Pay 20 EUR?" }));
    const { url, state } = await linkOf(server);
    const page = await open(url);
    expect(await page.textContent("blockquote")).toBe("Pay 20 EUR?");
    await page.click("text=Approve");
    await page.waitForSelector("text=Received");
    await vi.waitFor(async () => expect(await state()).toBe("TASK_STATE_COMPLETED"));
    expect(got).toEqual([true]);
    await page.goto(url);
    expect(await page.textContent("h1")).toBe("This link does not work");
  });

  test("accepts a secret, and a denial", async () => {
    const { server, got } = await asking((turn) => turn.authorize({ form: "secret", reason: "The key", label: "Key" }));
    const first = await linkOf(server);
    const page = await open(first.url);
    await page.fill("input[type=password]", "MARK-browser-0815 & ü");
    await page.click("text=Send");
    await page.waitForSelector("text=Received");
    await vi.waitFor(async () => expect(await first.state()).toBe("TASK_STATE_COMPLETED"));
    expect(got).toEqual(["MARK-browser-0815 & ü"]);
    const second = await linkOf(server);
    await page.goto(second.url);
    await page.click("text=Refuse");
    await page.waitForSelector("h1:has-text('Refused')");
    await vi.waitFor(async () => expect(await second.state()).toBe("TASK_STATE_FAILED"));
  });

  test("leads through an authorization server and back", async () => {
    let issuer = "";
    const { server, got } = await asking((turn) =>
      turn.authorize({ form: "oauth", reason: "Your calendar", server: issuer, clientId: "shop", scope: "openid" }),
    );
    const provider = await startProvider({
      clients: [
        {
          client_id: "shop",
          token_endpoint_auth_method: "none",
          redirect_uris: [`${server.url}/.well-known/parley/authorization`],
          grant_types: ["authorization_code"],
          response_types: ["code"],
        },
      ],
    });
    onTestFinished(() => provider.close());
    issuer = provider.issuer;
    const { url, state } = await linkOf(server);
    const page = await open(url);
    await page.click("text=Continue to");
    await page.waitForSelector("text=Received");
    await vi.waitFor(async () => expect(await state()).toBe("TASK_STATE_COMPLETED"));
    expect(got).toMatchObject([{ claims: { sub: "ada" } }]);
  });
});
