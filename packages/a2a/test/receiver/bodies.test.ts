import { describe, expect, test, vi } from "vitest";
import { deferred } from "../../src/base/index.ts";
import { reasonOf, receive, secret, status, url } from "./support.ts";

/* Tests the formats of bodies, and requests that are not webhooks. */

const event = status("TASK_STATE_WORKING");

describe("bodies", () => {
  const task = { id: "t1", contextId: "c1", status: { state: "TASK_STATE_COMPLETED" } };
  const task03 = { kind: "task", id: "t1", contextId: "c1", status: { state: "completed" } };
  test.each([
    ["a StreamResponse of 1.0 (§4.3.3)", { task }, "application/a2a+json", { task }],
    ["one as application/json, as Python and Go send it", { task }, "application/json; charset=utf-8", { task }],
    [
      "one with the names of the proto",
      { status_update: { task_id: "t1", context_id: "c1", status: { state: "TASK_STATE_WORKING" } } },
      "application/json",
      event,
    ],
    ["a Task of 0.3", task03, "application/json", { task }],
    ["a Task of 0.3 without kind", { ...task03, kind: undefined }, "application/json", { task }],
    [
      "a Task of 0.3 in snake case, as pydantic writes it by default",
      { kind: "task", id: "t1", context_id: "c1", status: { state: "completed" } },
      "application/json",
      { task },
    ],
    [
      "an update of 0.3, as JavaScript sends it",
      { kind: "status-update", taskId: "t1", contextId: "c1", final: false, status: { state: "working" } },
      "application/json",
      event,
    ],
  ])("%s", async (_name, body, contentType, expected) => {
    const { send, events } = receive();
    expect((await send(body, { contentType })).status).toBe(204);
    expect(events).toEqual([expected]);
  });

  test.each([
    ["no JSON", "{", 400],
    ["empty", "", 400],
    ["a list", "[]", 400],
    ["null", "null", 400],
    ["an object without an event", "{}", 400],
    ["two events", JSON.stringify({ ...event, task }), 400],
    ["a status without a task", JSON.stringify({ statusUpdate: { status: { state: "TASK_STATE_WORKING" } } }), 400],
    [
      "a message that names no task",
      JSON.stringify({ message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "x" }] } }),
      400,
    ],
    ["an event under a name of Object.prototype", '{"__proto__":{"task":{}}}', 400],
    ["nested a hundred thousand times", "[".repeat(100_000), 400],
  ])("a signed body that is %s is rejected with %i", async (_name, body, expected) => {
    const { send, events } = receive();
    expect((await send(body)).status).toBe(expected);
    expect(events).toEqual([]);
  });

  test.each(["text/plain", "application/x-www-form-urlencoded"])("%s is rejected with 415", async (contentType) => {
    const { send } = receive();
    expect((await send(event, { contentType })).status).toBe(415);
  });
});

describe("bodies whose sender is not verified yet", () => {
  const large = "x".repeat(400 << 10);

  test("take at most `pendingBytes` while a key set hangs, and small ones still wait", async () => {
    const { promise, reject } = deferred<Response>();
    const keySet = "https://agents.example.com/.well-known/jwks.json";
    const mebi = 1 << 20;
    const { send } = receive({ accept: { keySet }, fetch: () => promise, bodyBytes: mebi, pendingBytes: mebi });
    // The large bodies arrive in any order, because they are signed in parallel.
    const answered: Response[] = [];
    const all = [large, large, event, large, large].map(async (body) => void answered.push(await send(body)));
    await vi.waitFor(() => expect(answered).toHaveLength(2));
    expect(answered.map(({ status, headers }) => [status, headers.get("retry-after")])).toEqual(
      Array(2).fill([503, "1"]),
    );
    reject(new Error("no answer"));
    await Promise.all(all);
    const [busy, unread] = ["Too many webhooks are pending", "The key set of the sender cannot be read"];
    expect(await Promise.all(answered.map(reasonOf))).toEqual([busy, busy, unread, unread, unread]);
    // The receiver has released the memory of these bodies.
    expect(await reasonOf(await send(large))).toBe(unread);
  });
});

describe("requests", () => {
  test("at other paths are left to a framework", async () => {
    const { receiver, send } = receive();
    expect([receiver.answers("/hooks/a2a"), receiver.answers("/hooks/a2a?x=1")]).toEqual([true, true]);
    expect(["/hooks", "/hooks/a2a/", "/"].map(receiver.answers)).toEqual([false, false, false]);
    expect((await send(event, { path: "/hooks" })).status).toBe(404);
  });

  test("match `path` as the host sees it, if a proxy changes the path of `url`", async () => {
    const { receiver, send } = receive({ path: "/inside" });
    expect(receiver.config().url).toBe(url);
    expect((await send(event, { path: "/inside" })).status).toBe(204);
    expect((await send(event)).status).toBe(404);
  });

  test("with other methods are rejected with 405 and Allow", async () => {
    const response = await receive().send(event, { method: "GET" });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
  });

  test("for an unexpected task are rejected with 404 (A2A 1.0 §4.3.3)", async () => {
    const { send, events } = receive({ expects: (taskId) => Promise.resolve(taskId === "t1") });
    expect((await send(event)).status).toBe(204);
    expect((await send(status("TASK_STATE_WORKING", "t2"))).status).toBe(404);
    expect(events).toEqual([event]);
  });
});

describe("challenges", () => {
  const challenge = { challenge: "a random text <script>" };
  const token = { "x-a2a-notification-token": "s3cret" };

  test("are echoed as JSON, without a signature", async () => {
    const response = await receive().send(challenge, { key: undefined });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"]);
    expect(await response.json()).toEqual(challenge);
  });

  test("need the receiver's token, if any", async () => {
    const { send } = receive({ token: "s3cret" });
    expect((await send(challenge, { key: undefined, headers: token })).status).toBe(200);
    const refused = await send(challenge, { key: undefined });
    expect([refused.status, await reasonOf(refused)]).toEqual([401, "The challenge has no valid token"]);
  });

  test("of more than a kilobyte are not echoed", async () => {
    expect((await receive().send({ challenge: "x".repeat(2000) }, { key: undefined })).status).toBe(401);
  });
});

describe("subscriptions", () => {
  test("have their own tokens; deliveries with a token go to its listener", async () => {
    const { receiver, send, events } = receive();
    const seen: string[] = [];
    const subscription = receiver.subscribe((_event, { taskId }) => void seen.push(taskId));
    const { token = "", authentication } = subscription.config({ taskId: "t1" });
    expect(authentication).toEqual({ scheme: "StandardWebhooks", credentials: secret });
    const headers = { "x-a2a-notification-token": token };
    expect((await send(event, { headers })).status).toBe(204);
    expect([seen, events]).toEqual([["t1"], []]);
    // The token alone does not prove anything.
    expect((await send(event, { headers, key: undefined })).status).toBe(401);
    subscription.close();
    await expect.poll(async () => (await send(event, { headers })).status).toBe(410);
    expect([seen, events]).toEqual([["t1"], []]);
  });

  test("of another process are answered with 410, so the sender ends its config (Standard Webhooks)", async () => {
    const { token = "" } = receive()
      .receiver.subscribe(() => undefined)
      .config();
    const { send, events } = receive();
    expect((await send(event, { headers: { "x-a2a-notification-token": token } })).status).toBe(410);
    expect((await send(event, { headers: { "x-a2a-notification-token": token }, key: undefined })).status).toBe(401);
    expect(events).toEqual([]);
  });

  test("are the only source without `onEvent`", async () => {
    const { send } = receive({ onEvent: undefined as never });
    expect((await send(event)).status).toBe(404);
  });

  test("of a receiver that accepts tokens only are authenticated by their token", async () => {
    const { receiver, send } = receive({ accept: { tokenOnly: true }, onEvent: undefined as never });
    let seen = 0;
    const { token = "" } = receiver.subscribe(() => void (seen += 1)).config();
    expect((await send(event, { key: undefined, headers: { "x-a2a-notification-token": token } })).status).toBe(204);
    expect((await send(event, { key: undefined })).status).toBe(401);
    expect(seen).toBe(1);
  });
});
