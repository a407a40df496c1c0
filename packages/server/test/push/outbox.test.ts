import { describe, expect, it } from "vitest";
import type { Dialer } from "@parley/a2a/internal/net/index";
import type { AuditRecord, ObservedDelivery } from "@parley/a2a/internal/protocol/index";
import { fakeClock } from "@parley/testing";
import { agentMessage, chunk, completed, said, status, working } from "../../../testing/src/store/given.ts";
import { referenceKey } from "@parley/a2a/internal/webhooks/names";
import { gists, harness, receiver, until } from "./support.ts";

const input = (taskId: string) => status(taskId, "TASK_STATE_INPUT_REQUIRED");

describe("deliveries of a config", () => {
  it("arrive in order, with their ids, numbers and generations (A2A 1.0 §4.3.3)", async () => {
    const { url, received } = await receiver();
    const { task, append, outbox, row } = harness();
    await task("t", { c: `${url}/hook?secret` });
    await append("t", working("t"), { ...working("t", { text: "still" }), trace: "00-1-2-01" }, said("hm"));
    await append("t", { ...chunk("t", "a", "one", { lastChunk: true }), trace: "00-a-b-01" }, completed("t"));
    outbox.start();
    await until(async () => expect(await row("t")).not.toHaveProperty("due"));
    expect(gists(received)).toEqual(["working", "a: one", "completed"]);
    expect(
      received.map(({ headers }) => [
        headers["webhook-id"],
        headers["parley-sequence"],
        headers["parley-generation"],
        headers["parley-attempt"],
        headers["traceparent"],
      ]),
    ).toEqual([
      ["n-c_1_2", "1", "2", "1", undefined],
      ["n-c_2_5", "2", "4", "1", "00-a-b-01"],
      ["n-c_3_6", "3", "5", "1", undefined],
    ]);
    const [first] = received;
    expect(first?.headers).toMatchObject({ "content-type": "application/a2a+json", "a2a-version": "1.0" });
    expect(first?.headers["webhook-signature"]).toBe(`v1a,n-c_1_2.${String(first?.headers["webhook-timestamp"])}`);
    expect((await row("t"))?.config).toEqual({
      url: `${url}/hook?secret`,
      version: "1.0",
      created: 0,
      nonce: "n-c",
      cursor: 6,
      generation: 5,
      chunks: 6,
      state: "TASK_STATE_COMPLETED",
      sequence: 3,
      delivered: 3,
    });
  });

  it("continue when this process stores more, without waiting for the next poll", async () => {
    const { url, received } = await receiver();
    const clock = fakeClock();
    const { task, append, outbox } = harness({ clock, pollInterval: 60_000 });
    outbox.start();
    await task("t", { c: url });
    await append("t", working("t"));
    await until(() => expect(gists(received)).toEqual(["working"]));
    await append("t", completed("t"));
    await until(() => expect(gists(received)).toEqual(["working", "completed"]));
  });

  it("include events of another process, at the next poll", async () => {
    const { url, received } = await receiver();
    const clock = fakeClock();
    const { task, append, store } = harness({ clock });
    // No request or claim may end while the time passes until the poll.
    const timeout = 365 * 24 * 60 * 60_000;
    const patient = { timeout, net: { allowPrivate: true, timeout } };
    const other = harness({ clock, store, pollInterval: 60_000, settings: patient });
    other.outbox.start();
    await task("t", { c: url });
    await append("t", working("t"));
    await until(() => {
      clock.advance(60_000);
      expect(gists(received)).toEqual(["working"]);
    });
  });

  it("wait if the config asks for a client certificate that the server no longer has", async () => {
    const { url, received } = await receiver();
    const { task, append, outbox, row } = harness();
    await task("t", { c: { url, scheme: "MutualTLS" } });
    await append("t", working("t"));
    outbox.start();
    const reason = "This server has no client certificate";
    await until(async () => expect((await row("t"))?.config).toMatchObject({ attempts: 1, problem: { reason } }));
    expect(received).toEqual([]);
  });

  it("have the secrets that the config asks for", async () => {
    const { url, at } = await receiver();
    const mutualTls: Dialer = {
      resolve: () => Promise.resolve([{ address: "127.0.0.1", family: 4 }]),
      fetch: (to, _addresses, init) => fetch(to, init),
    };
    const { task, append, outbox } = harness({ settings: { mutualTls } });
    await task("t", {
      none: `${url}/none`,
      bearer: { url: `${url}/bearer`, scheme: "Bearer", sealed: JSON.stringify({ credentials: "x", token: "tok" }) },
      jwt: { url: `${url}/jwt`, scheme: "bearer" },
      key: { url: `${url}/key`, scheme: "ApiKey", sealed: JSON.stringify({ credentials: "k" }) },
      standard: {
        url: `${url}/standard`,
        scheme: "StandardWebhooks",
        sealed: JSON.stringify({ credentials: "whsec_1" }),
      },
      tls: { url: `${url}/tls`, scheme: "MutualTLS" },
    });
    await append("t", working("t"));
    outbox.start();
    await until(() => expect(at("/tls")).toHaveLength(1));
    await until(() =>
      expect(at("/none").concat(at("/bearer"), at("/jwt"), at("/key"), at("/standard"))).toHaveLength(5),
    );
    const headersAt = (path: string) => at(path)[0]?.headers ?? {};
    expect(headersAt("/none")).not.toHaveProperty("authorization");
    expect(headersAt("/bearer")).toMatchObject({
      authorization: "Bearer x",
      "x-a2a-notification-token": "tok",
      "a2a-notification-token": "tok",
    });
    expect(headersAt("/jwt")["authorization"]).toBe(`Bearer jwt.n-jwt_1_2.t.${url}/jwt`);
    expect(headersAt("/key")).toMatchObject({ authorization: "ApiKey k", "x-api-key": "k" });
    expect(headersAt("/standard")["webhook-signature"]).toMatch(/^v1a,\S+ v1,whsec_1$/);
    expect(headersAt("/standard")).not.toHaveProperty("authorization");
    expect(headersAt("/tls")).not.toHaveProperty("authorization");
  });

  it("are recorded if a credential was sent, without the credential", async () => {
    const { url, received } = await receiver(({ path }) => (path === "/refuses" ? 400 : 204));
    const records: AuditRecord[] = [];
    const { task, append, outbox } = harness({ audit: (record) => records.push(record) });
    await task("t", {
      key: { url: `${url}/key`, scheme: "ApiKey", sealed: JSON.stringify({ credentials: "the-secret" }) },
      refused: { url: `${url}/refuses`, sealed: JSON.stringify({ token: "the-token" }) },
      plain: `${url}/plain`,
    });
    await append("t", working("t"));
    outbox.start();
    await until(() => expect([received.length, records.length]).toEqual([3, 2]));
    const delivered = { agent: "agent", taskId: "t", contextId: "conversation" };
    const about = { event: "credential", action: "push.deliver", ...delivered };
    expect(records).toContainEqual({ ...about, outcome: "success", time: expect.any(Number) as number });
    expect(records).toContainEqual({ ...about, outcome: "failed", time: expect.any(Number) as number });
    expect(JSON.stringify(records)).not.toMatch(/the-secret|the-token/);
  });

  it("are reported to the observer, each attempt separately", async () => {
    const { url } = await receiver((_request, count) => (count === 0 ? 503 : 204));
    const clock = fakeClock();
    const seen: unknown[] = [];
    const delivery = (observed: ObservedDelivery) => {
      const { configId, origin, seq, attempt } = observed;
      return ({ status: code, error }: { status?: number; error?: Error }) =>
        seen.push([configId, origin, seq, attempt, code, error?.message]);
    };
    const { task, append, outbox } = harness({ clock, observer: { delivery } });
    await task("t", { c: `${url}/secret` });
    await append("t", working("t"));
    outbox.start();
    await until(() => {
      clock.advance(1_000);
      expect(seen).toEqual([
        ["c", url, 2, 1, 503, "The receiver answered with the status 503"],
        ["c", url, 2, 2, 204, undefined],
      ]);
    });
  });
});

describe("which events are delivered", () => {
  it("by default: changes of the state, ends and interruptions, and whole artifacts", async () => {
    const { url, received } = await receiver();
    const { task, append, outbox, row } = harness();
    await task("t", { c: url });
    await append("t", working("t"), working("t", { text: "more" }), chunk("t", "a", "1"));
    await append("t", chunk("t", "b", "x", { lastChunk: true }), input("t"), said("yes"), input("t"));
    outbox.start();
    await until(() => expect(gists(received)).toEqual(["working", "b: x", "input_required", "input_required"]));
    await append("t", chunk("t", "a", "2", { append: true }), chunk("t", "c", "y", { append: false }));
    await until(async () => expect((await row("t"))?.config.cursor).toBe(10));
    // The cursor has already passed the first chunks of the artifact.
    await append("t", chunk("t", "a", "3", { append: true, lastChunk: true }), completed("t"));
    await until(() => expect(gists(received).slice(4)).toEqual(["a: 123", "completed"]));
    expect(received[4]?.body).toEqual({
      artifactUpdate: {
        taskId: "t",
        contextId: "conversation",
        artifact: { artifactId: "a", parts: [{ text: "123" }] },
        lastChunk: true,
      },
    });
  });

  it("an artifact that was started again has only its new chunks", async () => {
    const { url, received } = await receiver();
    const { task, append, outbox } = harness();
    await task("t", { c: url });
    await append("t", chunk("t", "a", "old"), chunk("t", "a", "new"));
    await append("t", chunk("t", "a", "end", { append: true, lastChunk: true }));
    outbox.start();
    await until(() => expect(gists(received)).toEqual(["a: newend"]));
  });

  it("`all`: every event as the agent yielded it, and no message of the user", async () => {
    const { url, received } = await receiver();
    const { task, append, outbox } = harness({ settings: { events: "all" } });
    await task("t", { c: url });
    await append("t", working("t"), said("hm"), chunk("t", "a", "1"), chunk("t", "a", "2", { append: true }));
    outbox.start();
    await until(() => expect(gists(received)).toEqual(["task submitted", "working", "a: 1", "a: 2"]));
  });

  it("a function chooses; if it fails, the event is sent", async () => {
    const { url, received } = await receiver();
    const events = ({ statusUpdate, artifactUpdate }: { statusUpdate?: unknown; artifactUpdate?: unknown }) => {
      if (artifactUpdate !== undefined) throw new Error("no");
      return statusUpdate === undefined;
    };
    const { task, append, outbox, row } = harness({ settings: { events } });
    await task("t", { c: { url, cursor: 1 } });
    await append("t", working("t"), chunk("t", "a", "1"), completed("t"));
    outbox.start();
    await until(async () => expect((await row("t"))?.config.cursor).toBe(4));
    expect(gists(received)).toEqual(["a: 1"]);
  });

  it("a body that is too large is a reference, with its size (A2A 1.0 §4.1.7: an artifact has a part)", async () => {
    const { url, received } = await receiver();
    const { task, append, outbox } = harness({ settings: { bodyBytes: 1_000 } });
    const large = "x".repeat(600);
    await task("t", { c: url });
    await append("t", status("t", "TASK_STATE_WORKING", { text: large + large }));
    await append("t", chunk("t", "a", large), chunk("t", "a", large, { append: true, lastChunk: true }));
    await append("t", chunk("t", "b", large + large, { lastChunk: true }), completed("t", { text: "small" }));
    outbox.start();
    await until(() => expect(received).toHaveLength(4));
    const ids = { taskId: "t", contextId: "conversation" };
    const size = { [referenceKey]: expect.any(Number) as number };
    const timestamp = new Date(1_000).toISOString();
    expect(received.map(({ body }) => body as unknown)).toEqual([
      { statusUpdate: { ...ids, status: { state: "TASK_STATE_WORKING", timestamp }, metadata: size } },
      {
        artifactUpdate: {
          ...ids,
          artifact: { artifactId: "a", parts: [{ text: "" }] },
          lastChunk: true,
          metadata: size,
        },
      },
      {
        artifactUpdate: {
          ...ids,
          artifact: { artifactId: "b", parts: [{ text: "" }] },
          lastChunk: true,
          metadata: size,
        },
      },
      {
        statusUpdate: {
          ...ids,
          status: { state: "TASK_STATE_COMPLETED", timestamp, message: agentMessage("small") },
        },
      },
    ]);
    for (const { body } of received.slice(0, 3)) {
      const { metadata } = body.statusUpdate ?? body.artifactUpdate;
      expect(metadata[referenceKey]).toBeGreaterThan(1_000);
    }
  });
});

describe("a compacted log", () => {
  it("is delivered as the task, in place of the compacted events", async () => {
    const clock = fakeClock();
    const { url, received } = await receiver();
    const { task, append, outbox, store, row } = harness({ clock });
    await task("t", { c: url });
    await append("t", working("t"), chunk("t", "a", "1"), chunk("t", "a", "2", { append: true, lastChunk: true }));
    await append("t", completed("t", { time: 10 }));
    await store.sweep({ now: 0, compactBefore: 11, limit: 9 });
    outbox.start();
    await until(async () => expect(await row("t")).not.toHaveProperty("due"));
    expect(gists(received)).toEqual(["task completed"]);
    expect(received[0]?.body.task.artifacts).toEqual([{ artifactId: "a", parts: [{ text: "12" }] }]);
    expect(received[0]?.headers).toMatchObject({ "webhook-id": "n-c_1_5", "parley-generation": "5" });
    expect((await row("t"))?.config).toMatchObject({ cursor: 5, state: "TASK_STATE_COMPLETED", delivered: 1 });
  });
});

describe("a config of 0.3", () => {
  it("gets the current task, and several waiting events as one delivery (0.3 §9.5)", async () => {
    const { url, received } = await receiver();
    const { task, append, outbox, row } = harness();
    await task("t", { c: { url, version: "0.3" } });
    await append("t", working("t"), chunk("t", "a", "1", { lastChunk: true }), working("t", { text: "more" }));
    outbox.start();
    await until(async () => expect((await row("t"))?.config.cursor).toBe(4));
    await append("t", working("t", { text: "nothing new" }), completed("t"));
    await until(async () => expect((await row("t"))?.config.cursor).toBe(6));
    expect(gists(received)).toEqual(["task working", "task completed"]);
    expect(received[0]?.body).toMatchObject({ kind: "task", id: "t", artifacts: [{ artifactId: "a" }] });
    expect(
      received.map(({ headers }) => [headers["content-type"], headers["a2a-version"], headers["webhook-id"]]),
    ).toEqual([
      ["application/json", "0.3", "n-c_1_4"],
      ["application/json", "0.3", "n-c_2_6"],
    ]);
  });
});
