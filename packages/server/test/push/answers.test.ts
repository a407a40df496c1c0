import { describe, expect, it } from "vitest";
import { silentLogger } from "@parley/a2a/internal/base/index";
import type { Dialer } from "@parley/a2a/internal/net/index";
import { maxRefused } from "../../src/push/stored.ts";
import { fakeClock } from "@parley/testing";
import { completed, status, working } from "../../../testing/src/store/given.ts";
import { pushOperator } from "../../src/push/operator.ts";
import { pushSettingsOf } from "../../src/server/features.ts";
import { gists, harness, receiver, until, type Answers } from "./support.ts";

const minute = 60_000;
const hour = 60 * minute;

/** Creates a task with two events, for a receiver with these answers. */
async function delivering(answers: Answers, options: Parameters<typeof harness>[0] = {}) {
  const clock = fakeClock();
  const hook = await receiver(answers);
  const made = harness({ clock, ...options });
  await made.task("t", { c: `${hook.url}/hook` });
  await made.append("t", working("t"), completed("t"));
  made.outbox.start();
  /** Advances the clock until the row is due. Resolves to the time that this took. */
  const untilDue = async (): Promise<number> => {
    const { due = 0, config } = (await made.row("t")) ?? { config: undefined };
    const wait = due - clock.now();
    const attempts = config?.attempts ?? 0;
    clock.advance(wait - 1);
    clock.advance(1);
    await until(async () => {
      clock.advance(0);
      const row = await made.row("t");
      expect(row === undefined || row.config.claim === undefined).toBe(true);
      expect(row?.config.attempts).not.toBe(attempts);
    });
    return wait;
  };
  const failed = (attempts: number): Promise<void> =>
    until(async () => expect((await made.row("t"))?.config).toMatchObject({ attempts }));
  return { ...hook, ...made, clock, untilDue, failed };
}

/** Expects that all events have arrived, once and in order. */
async function arrived({ row, received, clock }: Awaited<ReturnType<typeof delivering>>): Promise<void> {
  await until(async () => {
    const { due, config } = (await row("t")) ?? {};
    // While a request is open, the clock must not advance.
    if (due !== undefined && config?.claim === undefined) clock.advance(Math.max(20, due - clock.now()));
    expect(config).toMatchObject({ cursor: 3, delivered: 2, sequence: 2 });
  });
  const last = gists(received).slice(-1);
  expect(last).toEqual(["completed"]);
  expect(gists(received).slice(0, -1)).not.toContain("completed");
}

describe("a failed attempt is repeated", () => {
  it.each([500, 502, 503, 504, 408, 425, 429])("after the status %i, with the same id and number", async (code) => {
    const given = await delivering((_request, count) => (count === 0 ? code : 204));
    await given.failed(1);
    const problem = (await given.row("t"))?.config.problem;
    expect(problem).toMatchObject({ status: code, reason: `The receiver answered with the status ${code}` });
    await arrived(given);
    expect(
      given.received.map(({ headers }) => [
        headers["webhook-id"],
        headers["parley-sequence"],
        headers["parley-attempt"],
      ]),
    ).toEqual([
      ["n-c_1_2", "1", "1"],
      ["n-c_1_2", "1", "2"],
      ["n-c_2_3", "2", "1"],
    ]);
    expect((await given.row("t"))?.config).not.toHaveProperty("problem");
  });

  it("after no answer within the time limit", async () => {
    const given = await delivering((_request, count) => (count === 0 ? undefined : 204));
    await until(() => expect(given.received).toHaveLength(1));
    given.clock.advance(10_000);
    await given.failed(1);
    expect((await given.row("t"))?.config.problem?.reason).toBe("No answer within 10000 ms");
    await arrived(given);
  });

  it("after an answer whose body never ends", async () => {
    const given = await delivering((_request, count, response) => {
      if (count > 0) return 204;
      response.writeHead(200).write("a little");
      return undefined;
    });
    await until(() => expect(given.received).toHaveLength(1));
    await until(async () => {
      given.clock.advance(1_000);
      expect((await given.row("t"))?.config.problem?.reason).toBe("No answer within 10000 ms");
    });
    await arrived(given);
  });

  it("after a connection that was reset in the middle of the answer, although its status was 200", async () => {
    const given = await delivering((_request, count, response) => {
      if (count > 0) return 204;
      response.writeHead(200, { "content-length": "100" }).write("half", () => response.socket?.resetAndDestroy());
      return undefined;
    });
    await given.failed(1);
    expect((await given.row("t"))?.config.problem?.reason).toMatch(/^The connection failed/);
    await arrived(given);
    // The receiver gets the first delivery twice, with the same id.
    expect(given.received.map(({ headers }) => headers["webhook-id"])).toEqual(["n-c_1_2", "n-c_1_2", "n-c_2_3"]);
  });

  it("after a connection that was closed without an answer, and without a server", async () => {
    const given = await delivering((_request, count, response) => {
      if (count > 0) return 204;
      response.socket?.destroy();
      return undefined;
    });
    await given.failed(1);
    await arrived(given);
    await given.task("u", { c: "http://127.0.0.1:1025/" });
    await given.append("u", working("u"));
    await until(async () =>
      expect((await given.row("u"))?.config.problem?.reason).toBe("The connection failed (ECONNREFUSED)"),
    );
  });

  it.each([
    ["a length", (size: number) => ({ "content-length": String(size) })],
    ["no length", () => ({})],
  ])("after an answer of a gigabyte with %s, of which at most the limit is read", async (_name, headers) => {
    let sent = 0;
    const given = await delivering((_request, count, response) => {
      if (count > 0) return 204;
      response.writeHead(200, headers(2 ** 30));
      const piece = Buffer.alloc(64 << 10);
      const send = (): void => {
        while (!response.destroyed && sent < 2 ** 30) {
          sent += piece.length;
          if (!response.write(piece)) break;
        }
      };
      response.on("drain", send);
      send();
      return undefined;
    });
    await given.failed(1);
    expect((await given.row("t"))?.config.problem?.reason).toBe("The answer is larger than 65536 bytes");
    await arrived(given);
    expect(sent).toBeLessThan(2 ** 29);
  });

  it("after a name that resolved to another address than before; the reason reveals no address", async () => {
    const looks = ["203.0.113.7", "127.0.0.1", "10.1.2.3"];
    const dialed: string[] = [];
    const dialer: Dialer = {
      resolve: () => Promise.resolve([{ address: looks.shift() ?? "8.8.8.8", family: 4 }]),
      fetch: (url, [first]) => {
        dialed.push(`${url.hostname} ${first?.address}`);
        return Promise.resolve(new Response(null, { status: 204 }));
      },
    };
    const clock = fakeClock();
    const { task, append, outbox, row } = harness({ clock, settings: { net: {}, dialer, retryAfter: [0, 0, 0, 0] } });
    await task("t", { c: "https://hooks.example/secret" });
    await append("t", working("t"));
    outbox.start();
    const reasons = new Set<string | undefined>();
    await until(async () => {
      clock.advance(20);
      const { config } = (await row("t")) ?? {};
      reasons.add(config?.problem?.reason);
      expect(config?.delivered).toBe(1);
    });
    expect(dialed).toEqual(["hooks.example 8.8.8.8"]);
    for (const reason of reasons) {
      expect(reason ?? "").not.toMatch(/127|10\.1|203|hooks/);
      if (reason !== undefined)
        expect(reason).toBe("Address refused: its host resolves to an address that is not public");
    }
  });
});

describe("retries", () => {
  it("come early after 1, 5, 15 and 60 seconds, then over three days as in Standard Webhooks; then the config is parked with the reason until an operator says so", async () => {
    let code = 500;
    const late = [5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour];
    const waits = [1_000, 5_000, 15_000, minute, ...late];
    const { retryAfter = [] } = pushSettingsOf(true, "http://localhost", silentLogger) ?? {};
    const given = await delivering(() => code, { settings: { retryAfter } });
    const took: number[] = [];
    await given.failed(1);
    for (const wait of waits) {
      const waited = await given.untilDue();
      took.push(waited);
      expect(Math.abs(waited - wait)).toBeLessThanOrEqual(wait / 5);
    }
    expect(given.received).toHaveLength(13);
    expect(await given.row("t")).toBeUndefined();
    const problem = { status: 500, reason: "The receiver answered with the status 500" };
    expect(await given.parked("t")).toMatchObject({ cursor: 0, attempts: 13, problem, delivered: 0 });
    const warnings = given.log.filter(({ level }) => level === "warn");
    expect(warnings).toEqual([
      expect.objectContaining({
        agent: "agent",
        taskId: "t",
        configId: "c",
        origin: given.url,
        reason: problem.reason,
      }),
    ]);
    expect(JSON.stringify(warnings)).not.toContain("/hook");
    // The delays have jitter.
    expect(new Set(took.map((each, at) => each / (waits[at] ?? 1))).size).toBeGreaterThan(1);

    code = 204;
    await given.append("t");
    expect(await pushOperator(given.store, { clock: given.clock }).retry("agent", "t", "c")).toBe(true);
    await arrived(given);
    expect(await given.parked("t")).toBeUndefined();
  });

  it.each([
    ["in seconds", () => "7200"],
    ["as a date", (now: number) => new Date(now + 2 * hour).toUTCString()],
  ])("wait as long as Retry-After asks %s (RFC 9110 §10.2.3)", async (_name, header) => {
    const clock = fakeClock();
    const given = await delivering(
      (_request, count, response) => {
        if (count > 0) return 204;
        response.setHeader("retry-after", header(clock.now()));
        return 429;
      },
      { clock },
    );
    await given.failed(1);
    expect(await given.row("t")).toMatchObject({ due: clock.now() + 2 * hour });
  });

  it.each([
    ["1000000", 24 * hour],
    ["-5", 0],
    ["soon", 0],
    ["9".repeat(400), 24 * hour],
  ])("wait for a day at most, and ignore an invalid Retry-After: %s", async (header, least) => {
    const given = await delivering((_request, _count, response) => {
      response.setHeader("retry-after", header);
      return 503;
    });
    await given.failed(1);
    const { due = 0 } = (await given.row("t")) ?? {};
    const wait = due - given.clock.now();
    if (least > 0) expect(wait).toBe(least);
    else expect(Math.abs(wait - 5_000)).toBeLessThanOrEqual(1_000);
  });
});

describe("an event that the receiver rejects", () => {
  it.each([400, 401, 404, 413, 422])("with %i is kept with the reason, and the next one is delivered", async (code) => {
    const given = await delivering((_request, count) => (count === 0 ? code : 204));
    await until(async () => expect((await given.row("t"))?.config.delivered).toBe(1));
    expect(gists(given.received)).toEqual(["working", "completed"]);
    expect((await given.row("t"))?.config).toMatchObject({
      cursor: 3,
      sequence: 2,
      refused: [{ seq: 2, sequence: 1, status: code, reason: `The receiver answered with the status ${code}` }],
    });
  });

  it("is logged without its address, because nothing will repeat it", async () => {
    const given = await delivering((_request, count) => (count === 0 ? 404 : 204));
    await until(async () => expect((await given.row("t"))?.config.delivered).toBe(1));
    const logged = given.log.filter(({ level }) => level === "info");
    const reason = "The receiver answered with the status 404";
    expect(logged).toMatchObject([{ message: "Webhook receiver rejected event", taskId: "t", configId: "c", reason }]);
    expect(JSON.stringify(logged)).not.toContain("/hook");
  });

  it("with a redirect counts as rejected; the server does not follow it", async () => {
    const target = await receiver();
    const given = await delivering((_request, count, response) => {
      if (count > 0) return 204;
      response.setHeader("location", `${target.url}/inside`);
      return 307;
    });
    await until(async () => expect((await given.row("t"))?.config.delivered).toBe(1));
    const reason = "The receiver answered with a redirect (307), which is not followed";
    expect((await given.row("t"))?.config.refused).toMatchObject([{ seq: 2, status: 307, reason }]);
    expect(target.received).toEqual([]);
  });

  it("is retried at an operator's request, before the others, with its old id and number", async () => {
    let code = 400;
    const given = await delivering(() => code);
    await until(async () => expect((await given.row("t"))?.config.refused).toHaveLength(2));
    const operator = pushOperator(given.store, { clock: given.clock });
    expect(await operator.retry("agent", "t", "c", { seq: 3 })).toBe(true);
    await until(async () => {
      given.clock.advance(20);
      expect(await given.row("t")).not.toHaveProperty("due");
    });
    expect((await given.row("t"))?.config).toMatchObject({ refused: [{ seq: 2 }, { seq: 3 }], delivered: 0 });
    code = 204;
    expect(await operator.retry("agent", "t", "c", { seq: 3 })).toBe(true);
    expect(await operator.retry("agent", "t", "c", { seq: 2 })).toBe(true);
    await until(async () => {
      given.clock.advance(20);
      expect(await given.row("t")).not.toHaveProperty("due");
    });
    expect((await given.row("t"))?.config).toMatchObject({ cursor: 3, sequence: 2, delivered: 2 });
    expect((await given.row("t"))?.config).not.toHaveProperty("refused");
    expect(given.received.slice(3).map(({ headers }) => [headers["webhook-id"], headers["parley-sequence"]])).toEqual([
      ["n-c_2_3", "2"],
      ["n-c_1_2", "1"],
    ]);
  });

  it(`is the last one after ${maxRefused} unattended ones: then the config is parked`, async () => {
    const given = await delivering(() => 400);
    const statuses = Array.from({ length: maxRefused }, (_, at) =>
      status("u", at % 2 ? "TASK_STATE_WORKING" : "TASK_STATE_INPUT_REQUIRED"),
    );
    await given.task("u", { c: `${given.url}/u` });
    await given.append("u", working("u"), ...statuses);
    await until(async () => expect(await given.parked("u")).toMatchObject({ cursor: maxRefused + 1 }));
    expect((await given.parked("u"))?.refused).toHaveLength(maxRefused);
    expect(given.at("/u")).toHaveLength(maxRefused + 1);
  });
});

describe("410", () => {
  it("deletes the config", async () => {
    const given = await delivering(() => 410);
    await until(async () => expect(await given.row("t")).toBeUndefined());
    expect(await given.parked("t")).toBeUndefined();
    expect(given.received).toHaveLength(1);
  });
});
