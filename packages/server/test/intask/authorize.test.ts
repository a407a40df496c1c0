import { describe, expect, test, vi } from "vitest";
import { answerAuthorization, type Client } from "@parley/a2a/internal/client/index";
import { AuthorizationNotGiven, type Turn } from "@parley/a2a/internal/protocol/index";
import { text } from "@parley/a2a/internal/model/index";
import { fakeClock } from "@parley/testing";
import { agentOf, asked, posted, rest, serving, type Served } from "./support.ts";

const secret = "MARK-secret-4711";

const begin = (client: Client) => client.sendStreamingMessage("Buy bread")[Symbol.asyncIterator]();

/** Asks for an authorization, and reports the answer. */
async function* asking(turn: Turn, init: Parameters<Turn["authorize"]>[0] = { form: "approval", reason: "Pay?" }) {
  yield turn.working("Looking");
  const given = yield* turn.authorize(init);
  yield turn.artifact({ parts: [text(given === true ? "paid" : "bought")] });
}

const reasonOf = async (client: Client, taskId: string): Promise<string | undefined> =>
  (await client.getTask(taskId)).status.message?.parts[0]?.text;

describe("turn.authorize() (A2A 1.0 §7.6)", () => {
  test("asks with a link, keeps the stream open, and gives the secret only to the agent", async () => {
    let got: string | undefined;
    const served = serving(
      agentOf(async function* (turn) {
        got = yield* turn.authorize({ form: "secret", reason: "The key of your shop", label: "API key" });
        yield turn.artifact({ parts: [text("bought")] });
      }),
    );
    const client = await served.client();
    const events = begin(client);
    const { request, taskId } = await asked(events);
    expect(request).toMatchObject({ form: "secret", url: expect.stringContaining("https://agents.example.com/") });
    const page = await served.fetch(request.url ?? "");
    expect(page.status).toBe(200);
    expect(page.headers.get("referrer-policy")).toBe("same-origin");
    expect(page.headers.get("cache-control")).toBe("no-store");
    expect(await page.text()).toContain("API key");
    expect((await posted(served, request, { decision: "give", secret })).status).toBe(200);
    expect(await rest(events)).toEqual(["WORKING", "bought", "COMPLETED"]);
    expect(got).toBe(secret);
    expect(JSON.stringify(await client.getTask(taskId))).not.toContain(secret);
    expect(served.log.join("\n")).not.toContain(secret);
    expect(await served.store.features({ agent: "/" }, taskId, "authorization")).toEqual([]);
  });

  test("shows the agent and its request as text, never as markup", async () => {
    const reason = `<script>alert("x")</script> & \u202e`;
    const served = serving(agentOf((turn) => asking(turn, { form: "approval", reason }), { name: "<b>Shop</b>" }));
    const { request } = await asked(begin(await served.client()));
    const page = await (await served.fetch(request.url ?? "")).text();
    expect(page).toContain("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &lt;U+202E&gt;");
    expect(page).toContain("&lt;b&gt;Shop&lt;/b&gt;");
    expect(page).toContain("<b>ada</b>");
    expect(page).not.toContain("<script>");
  });

  test("fails the task with a sentence if the person refuses", async () => {
    const served = serving(agentOf((turn) => asking(turn)));
    const client = await served.client();
    const events = begin(client);
    const { request, taskId } = await asked(events);
    expect((await posted(served, request, { decision: "deny" })).status).toBe(200);
    expect(await rest(events)).toEqual(["FAILED"]);
    expect(await reasonOf(client, taskId)).toBe("The authorization was refused.");
  });

  test("lets an agent continue without it", async () => {
    const served = serving(
      agentOf(async function* (turn) {
        try {
          yield* asking(turn);
        } catch (error) {
          if (!(error instanceof AuthorizationNotGiven) || error.kind !== "denied") throw error;
          yield turn.completed("Nothing was paid");
        }
      }),
    );
    const events = begin(await served.client());
    const { request } = await asked(events);
    await posted(served, request, { decision: "deny" });
    expect(await rest(events)).toEqual(["COMPLETED"]);
  });

  test("expires regardless of wall clock jumps, and then the link is invalid", async () => {
    for (const jump of [0, -3_600_000, 3_600_000]) {
      const clock = fakeClock();
      const served = serving(
        agentOf((turn) => asking(turn, { form: "approval", reason: "Pay?", lifetime: 60_000 })),
        { clock },
      );
      const client = await served.client();
      const events = begin(client);
      const { request, taskId } = await asked(events);
      expect((await served.fetch(request.url ?? "")).status).toBe(200);
      clock.jump(jump);
      const over = rest(events);
      await vi.waitFor(async () => {
        clock.advance(61_000);
        expect((await client.getTask(taskId)).status.state).toBe("TASK_STATE_FAILED");
      });
      expect(await over).toEqual(["FAILED"]);
      expect(await reasonOf(client, taskId)).toBe("The authorization was not given in time.");
      expect((await posted(served, request, { decision: "approve" })).status).toBe(410);
    }
  });

  test("accepts JSON that another service posts to the URL that the agent passed on", async () => {
    let given: unknown;
    let passed = "";
    const served = serving(
      agentOf(async function* (turn) {
        const link = (callbackUrl: string): string => {
          passed = callbackUrl;
          return "https://bank.example/approve?order=7";
        };
        given = yield* turn.authorize({ form: "callback", reason: "Approve at your bank", link });
        yield turn.artifact({ parts: [text("paid")] });
      }),
    );
    const events = begin(await served.client());
    const { request } = await asked(events);
    expect(request.url).toBe("https://bank.example/approve?order=7");
    const headers = { "content-type": "application/json" };
    const post = (body: string) => served.fetch(passed, { method: "POST", headers, body });
    expect((await post("{")).status).toBe(400);
    expect((await post(`{"other":1}`)).status).toBe(400);
    expect((await post(JSON.stringify({ credential: { mandate: secret } }))).status).toBe(200);
    expect(await rest(events)).toEqual(["WORKING", "paid", "COMPLETED"]);
    expect(given).toEqual({ mandate: secret });
  });

  test("begins with a task, even as the first action of an agent that may reply directly (§7.6.1)", async () => {
    const served = serving(agentOf((turn) => turn.authorize({ form: "approval", reason: "Pay?" }) as never));
    const { task } = await (await served.client()).sendMessage("Buy");
    expect(task?.status.state).toBe("TASK_STATE_AUTH_REQUIRED");
  });

  test("asks again for each authorization: one does not replace the next (§7.6.4)", async () => {
    const served = serving(
      agentOf(async function* (turn) {
        yield* asking(turn);
        yield* asking(turn);
      }),
    );
    const events = begin(await served.client());
    const first = await asked(events);
    await posted(served, first.request, { decision: "approve" });
    const second = await asked(events);
    expect(second.request.url).not.toBe(first.request.url);
    expect((await posted(served, first.request, { decision: "approve" })).status).toBe(410);
    await posted(served, second.request, { decision: "approve" });
    expect(await rest(events)).toEqual(["WORKING", "paid", "COMPLETED"]);
  });

  test("asks again for the next message, even under the same id (§7.6.4)", async () => {
    const served = serving(
      agentOf(async function* (turn) {
        yield* asking(turn, { form: "approval", reason: "Pay?", id: "payment" });
        yield turn.inputRequired("Anything else?");
      }),
    );
    const client = await served.client();
    const events = begin(client);
    const first = await asked(events);
    await posted(served, first.request, { decision: "approve" });
    expect((await rest(events)).at(-1)).toBe("INPUT_REQUIRED");
    const again = client.sendStreamingMessage({ parts: [text("And milk")], taskId: first.taskId });
    const second = await asked(again[Symbol.asyncIterator]());
    expect(second.request.url).not.toBe(first.request.url);
    const { status, artifacts } = await client.getTask(first.taskId);
    expect(status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    expect(artifacts).toHaveLength(1);
    // If an answer to the first request is late, it does not count for the second request.
    expect((await posted(served, first.request, { decision: "approve" })).status).toBe(410);
    expect((await client.getTask(first.taskId)).artifacts).toHaveLength(1);
  });

  test("does not treat the state as an authorization: it continues only with an answer (§7.6.4)", async () => {
    const served = serving(agentOf((turn) => (turn.number === 1 ? asking(turn) : asking(turn))));
    const client = await served.client();
    const events = begin(client);
    const { taskId } = await asked(events);
    const { task } = await client.sendMessage({ parts: [text("I agree")], taskId });
    expect(task?.status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    expect(task?.artifacts ?? []).toEqual([]);
  });

  test("ends the turn for another message, which starts the next one (§7.6.1)", async () => {
    const served = serving(
      agentOf((turn) => (turn.number === 1 ? asking(turn) : turn.completed(`Not with ${turn.text}`))),
    );
    const client = await served.client();
    const events = begin(client);
    const { request, taskId } = await asked(events);
    const { task } = await client.sendMessage({ parts: [text("my other card")], taskId });
    expect(task?.status).toMatchObject({
      state: "TASK_STATE_COMPLETED",
      message: { parts: [{ text: "Not with my other card" }] },
    });
    expect((await rest(events)).at(-1)).toBe("COMPLETED");
    expect((await served.fetch(request.url ?? "")).status).toBe(410);
  });

  test("deletes the request of a task that is canceled", async () => {
    const served = serving(agentOf((turn) => asking(turn)));
    const client = await served.client();
    const events = begin(client);
    const { request, taskId } = await asked(events);
    await client.cancelTask(taskId);
    expect(await rest(events)).toEqual(["CANCELED"]);
    expect((await posted(served, request, { decision: "approve" })).status).toBe(410);
    await vi.waitFor(async () =>
      expect(await served.store.features({ agent: "/" }, taskId, "authorization")).toEqual([]),
    );
  });

  test.each<[string, unknown]>([
    ["form", { form: "trust", reason: "x" }],
    ["reason", { form: "approval", reason: " " }],
    ["reason", { form: "approval", reason: "x".repeat(2001) }],
    ["lifetime", { form: "approval", reason: "x", lifetime: Number.NaN }],
    ["lifetime", { form: "approval", reason: "x", lifetime: 86_400_001 }],
    ["id", { form: "approval", reason: "x", id: "a/b" }],
    ["link", { form: "callback", reason: "x", link: () => "http://bank.example/" }],
    ["link", { form: "callback", reason: "x", link: () => "javascript:alert(1)" }],
  ])("rejects an invalid %s (%#)", async (says, init) => {
    const served = serving(agentOf((turn) => asking(turn, init as never)));
    const { task } = await (await served.client()).sendMessage("Buy");
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(served.log.find((line) => line.startsWith("error"))).toContain(says);
  });

  test("requires a key if others reach the server, and generates one for a server on this machine", async () => {
    const agent = agentOf((turn) => asking(turn));
    const send = async (served: Served) => (await (await served.client()).sendMessage("Buy")).task?.status.state;
    const open = serving(agent, { authorization: {} });
    expect(await send(open)).toBe("TASK_STATE_FAILED");
    expect(open.log.join("\n")).toContain("authorization.keys");
  });
});

describe("a credential in a message (A2A 1.0 §7.6.3, 0.3 §4.5)", () => {
  const inMessage = agentOf(async function* (turn) {
    const token = yield* turn.authorize({ form: "secret", reason: "The key", inMessage: true });
    yield turn.artifact({ parts: [text(token === secret ? "bought" : "wrong")] });
  });

  test("is removed before anything is stored, and the waiting turn continues with it", async () => {
    const served = serving(inMessage);
    const client = await served.client();
    const events = begin(client);
    const { request, taskId } = await asked(events);
    expect(request.inMessage).toBe(true);
    const parts = [text("Here it is"), answerAuthorization(request, { credential: secret })];
    const { task } = await client.sendMessage({ parts, taskId });
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(await rest(events)).toEqual(["WORKING", "bought", "COMPLETED"]);
    expect(JSON.stringify(task)).not.toContain(secret);
    expect(task?.history?.map(({ parts: [first] }) => first?.text)).toContain("Here it is");
  });

  test("may be repeated, but another answer does not replace it", async () => {
    const served = serving(inMessage);
    const client = await served.client();
    const { request, taskId } = await asked(begin(client));
    const message = (credential: string) => ({
      messageId: "1",
      parts: [answerAuthorization(request, { credential })],
      taskId,
    });
    const [one, other] = await Promise.all([client.sendMessage(message(secret)), client.sendMessage(message(secret))]);
    expect(one.task?.history?.length).toBe(other.task?.history?.length);
    await expect(client.sendMessage(message("another"))).rejects.toMatchObject({ code: "UnsupportedOperation" });
  });

  test("may be a refusal", async () => {
    const served = serving(inMessage);
    const client = await served.client();
    const { request, taskId } = await asked(begin(client));
    const { task } = await client.sendMessage({ parts: [answerAuthorization(request, { denied: true })], taskId });
    expect(task?.status).toMatchObject({ state: "TASK_STATE_FAILED" });
  });

  test("is rejected, and not stored, if the agent did not say that it accepts one", async () => {
    const served = serving(agentOf((turn) => asking(turn, { form: "secret", reason: "The key" })));
    const client = await served.client();
    const { request, taskId } = await asked(begin(client));
    const answer = answerAuthorization(request, { credential: secret });
    for (const parts of [
      [answer],
      [text("x"), answer],
      [answer, answer],
      [answerAuthorization({ id: "9" }, { credential: secret })],
    ]) {
      await expect(client.sendMessage({ parts, taskId })).rejects.toMatchObject({ code: "InvalidParams" });
    }
    await expect(client.sendMessage({ parts: [answer] })).rejects.toMatchObject({ code: "InvalidParams" });
    expect(JSON.stringify(await client.getTask(taskId))).not.toContain(secret);
  });

  test("of another principal finds no task", async () => {
    const served = serving(inMessage);
    const { request, taskId } = await asked(begin(await served.client()));
    const parts = [answerAuthorization(request, { credential: "stolen" })];
    await expect((await served.client("bob")).sendMessage({ parts, taskId })).rejects.toMatchObject({
      code: "TaskNotFound",
    });
  });
});
