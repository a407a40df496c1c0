import { describe, expect, test } from "vitest";
import type { TaskPushNotificationConfig } from "@parley/a2a/model";
import type { AuthenticationInfo } from "@parley/a2a/internal/model/index";
import { isLoopback, silentLogger } from "@parley/a2a/internal/base/index";
import type { Dialer } from "@parley/a2a/internal/net/index";
import type { PushOptions } from "../../src/push/index.ts";
import { pushSettingsOf } from "../../src/server/features.ts";
import { callContext, fakeClock } from "@parley/testing";
import { harness, type Harness } from "../engine/support.ts";
import { dialerTo, settingsOf, testKey } from "./config-support.ts";

/* Tests how the server checks configs, both on their own and in a message. The error must name each invalid member. */

const url = "https://hooks.example.org/parley";
const ada = callContext({ subject: "ada" });

function setup(options: PushOptions = {}, push = settingsOf(options)): Harness {
  return harness(
    async function* (turn) {
      yield turn.inputRequired("Which city?");
    },
    { push },
  );
}

/** Registers a config on its own, with a first message, and with a message for a task. */
async function tries({ service, send }: Harness, config: Partial<TaskPushNotificationConfig>) {
  const { id: taskId } = await send("hi", { subject: "ada" });
  const create = () => service.call("CreateTaskPushNotificationConfig", { url, ...config, taskId }, ada);
  const message = (more: object) => ({
    messageId: crypto.randomUUID(),
    role: "ROLE_USER" as const,
    parts: [{ text: "x" }],
    ...more,
  });
  const configuration = { taskPushNotificationConfig: { url, ...config } };
  const first = () => service.call("SendMessage", { message: message({}), configuration }, ada);
  const next = () => service.call("SendMessage", { message: message({ taskId }), configuration }, ada);
  return { taskId, create, first, next };
}

const bearer = (credentials: string): { authentication: AuthenticationInfo } => ({
  authentication: { scheme: "Bearer", credentials },
});

const wrong: readonly (readonly [field: string, Partial<TaskPushNotificationConfig>])[] = [
  ["id", { id: "x".repeat(513) }],
  ["id", { id: "é".repeat(300) }],
  ["url", { url: "not a url" }],
  ["url", { url: "/hook" }],
  ["url", { url: `https://hooks.example.org/${"x".repeat(2048)}` }],
  ["url", { url: "ftp://hooks.example.org/" }],
  ["url", { url: "file:///etc/passwd" }],
  ["url", { url: "javascript:alert(1)" }],
  ["url", { url: "https://user:password@hooks.example.org/" }],
  ["url", { url: "http://127.0.0.1:8080/" }],
  ["url", { url: "http://localhost/" }],
  ["url", { url: "http://0x7f.1/" }],
  ["url", { url: "http://[::1]/" }],
  ["url", { url: "http://[::ffff:10.0.0.1]/" }],
  ["url", { url: "http://10.0.0.1/" }],
  ["url", { url: "http://169.254.169.254/latest/meta-data" }],
  ["url", { url: "https://hooks.internal/" }],
  ["url", { url: "https://hooks.example.org:22/" }],
  ["token", { token: "two\r\nlines" }],
  ["token", { token: "naïve" }],
  ["token", { token: " padded " }],
  ["token", { token: "\0" }],
  ["token", { token: "x".repeat(1025) }],
  ["authentication.scheme", { authentication: { scheme: "two words", credentials: "c" } }],
  ["authentication.scheme", { authentication: { scheme: "Bearer\r\nX-Header:", credentials: "c" } }],
  ["authentication.scheme", { authentication: { scheme: "x".repeat(65), credentials: "c" } }],
  ["authentication.scheme", { authentication: { scheme: "Digest", credentials: "c" } }],
  ["authentication.scheme", { authentication: { scheme: "negotiate", credentials: "c" } }],
  ["authentication.scheme", { authentication: { scheme: "MutualTLS" } }],
  ["authentication.credentials", { authentication: { scheme: "Basic" } }],
  ["authentication.credentials", { authentication: { scheme: "ApiKey" } }],
  ["authentication.credentials", { authentication: { scheme: "Whatever" } }],
  ["authentication.credentials", bearer("c\r\nX-Header: 1")],
  ["authentication.credentials", bearer("x".repeat(4097))],
  ["authentication.credentials", { authentication: { scheme: "StandardWebhooks" } }],
  ["authentication.credentials", { authentication: { scheme: "StandardWebhooks", credentials: "secret" } }],
  ["authentication.credentials", { authentication: { scheme: "standardwebhooks", credentials: "whsec_c2hvcnQ=" } }],
];

describe("a config with a wrong member gets InvalidParams, and nothing is stored (A2A 1.0 §3.3.2)", () => {
  test.each(wrong.map(([field, config]) => ({ field, shown: JSON.stringify(config).slice(0, 70), config })))(
    "$field: $shown",
    async ({ field, config }) => {
      const made = setup();
      const { create, first, next, taskId } = await tries(made, config);
      await expect(create()).rejects.toMatchObject({ code: "InvalidParams", fields: [{ field }] });
      const inside = {
        code: "InvalidParams",
        fields: [{ field: `configuration.taskPushNotificationConfig.${field}` }],
      };
      await expect(first()).rejects.toMatchObject(inside);
      await expect(next()).rejects.toMatchObject(inside);
      const { payload } = await made.service.call("ListTaskPushNotificationConfigs", { taskId }, ada);
      expect(payload.value.configs).toEqual([]);
      expect((await made.service.call("ListTasks", {}, ada)).payload.value.totalSize).toBe(1);
      expect((await made.get(taskId, { subject: "ada" })).history).toHaveLength(2);
    },
  );

  test("the error names all of them at once", async () => {
    const { create } = await tries(setup(), { token: "\n", ...bearer("\n") });
    await expect(create()).rejects.toMatchObject({
      fields: [{ field: "token" }, { field: "authentication.credentials" }],
    });
  });

  test("the error shows no secret", async () => {
    const { create } = await tries(setup(), { token: "the-token\n", ...bearer("the-credentials\n") });
    const error: unknown = await create().catch((thrown: unknown) => thrown);
    expect(JSON.stringify(error) + String(error)).not.toMatch(/the-token|the-credentials/);
  });
});

describe("a config is accepted", () => {
  const secret = `whsec_${btoa("s".repeat(32))}`;
  test.each([
    [
      "with an empty id, task, token and credentials, which protobuf cannot tell from absent ones",
      { id: "", taskId: "", token: "", ...bearer("") },
    ],
    [
      "with every member as long as it may be",
      {
        id: "i".repeat(512),
        url: `${url}?${"\\".repeat(2048 - url.length - 1)}`,
        token: '"'.repeat(1024),
        authentication: { scheme: "s".repeat(64), credentials: '"'.repeat(4096) },
      },
    ],
    ["with Bearer and no credentials, which asks for a JWT", { authentication: { scheme: "bearer" } }],
    ["with a scheme of its own", { authentication: { scheme: "Token", credentials: "c d" } }],
    ["with a secret of Standard Webhooks", { authentication: { scheme: "STANDARDWEBHOOKS", credentials: secret } }],
  ])("%s", async (_what, config) => {
    const { create, first, next } = await tries(setup(), config);
    await create();
    await first();
    await next();
  });

  test("with MutualTLS, if the server has a client certificate, only for https", async () => {
    const mutual = { authentication: { scheme: "MutualTLS" } };
    const dialer = dialerTo("93.184.215.14");
    const options = { mutualTls: dialer, dialer };
    await (await tries(setup(options), mutual)).create();
    const plain = await tries(setup(options), { ...mutual, url: "http://hooks.example.org/" });
    await expect(plain.create()).rejects.toMatchObject({ fields: [{ field: "authentication.scheme" }] });
    const both = { authentication: { scheme: "MutualTLS", credentials: "c" } };
    const given = await tries(setup(options), both);
    await expect(given.create()).rejects.toMatchObject({ fields: [{ field: "authentication.credentials" }] });
  });
});

describe("the address of a config (§13.2)", () => {
  test.each(["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "fd00::1"])(
    "is rejected if its name resolves to %s",
    async (address) => {
      const { create } = await tries(setup({ dialer: dialerTo(address) }), {});
      const error: unknown = await create().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "InvalidParams", fields: [{ field: "url" }] });
      // The caller must not learn about the server's network.
      expect(String(error)).not.toContain(address);
    },
  );

  test("is accepted if its name has no address now: each delivery checks again", async () => {
    const dialer: Dialer = { ...dialerTo("10.0.0.1"), resolve: () => Promise.reject(new Error("ENOTFOUND")) };
    await (await tries(setup({ dialer }), {})).create();
  });

  test("does not delay the call if the resolver never answers", async () => {
    const clock = fakeClock();
    let asked = (): void => {};
    const resolving = new Promise<void>((resolve) => (asked = resolve));
    const dialer: Dialer = {
      ...dialerTo("10.0.0.1"),
      resolve: () => {
        asked();
        return new Promise(() => {});
      },
    };
    const made = harness((turn) => turn.reply("x"), { push: settingsOf({ dialer }), clock });
    const configuration = { taskPushNotificationConfig: { url } };
    const sent = made.ask("hi", { configuration });
    await resolving;
    clock.advance(10_000);
    expect((await sent).message?.parts).toEqual([{ text: "x" }]);
  });

  test.each([
    ["http://localhost:4000", true],
    ["http://127.0.0.1:4000", true],
    ["https://agents.example.com", false],
  ])("may be on this machine for a server at %s: %s", async (publicUrl, allowed) => {
    expect(isLoopback(new URL(publicUrl).hostname)).toBe(allowed);
    const push = pushSettingsOf({ keys: [testKey], dialer: dialerTo("127.0.0.1") }, publicUrl, silentLogger);
    if (push === undefined) throw new Error("Push is on");
    for (const address of ["http://127.0.0.1:8080/", "http://localhost:8080/", "http://[::1]:8080/"]) {
      const { create } = await tries(setup({}, push), { url: address });
      if (allowed) await create();
      else await expect(create()).rejects.toMatchObject({ fields: [{ field: "url" }] });
    }
    const elsewhere = await tries(setup({}, push), { url: "http://10.0.0.1/" });
    await expect(elsewhere.create()).rejects.toMatchObject({ fields: [{ field: "url" }] });
  });
});

describe("the challenge", () => {
  const answering = (answer: (challenge: string) => Response) =>
    dialerTo("93.184.215.14", (_, body) => answer((JSON.parse(body) as { challenge: string }).challenge));

  test("is answered by a receiver that wants the events", async () => {
    const asked: string[] = [];
    const dialer = answering((challenge) => {
      asked.push(challenge);
      return Response.json({ challenge });
    });
    const { create } = await tries(setup({ challenge: true, dialer }), { token: "the-token" });
    await create();
    await create();
    expect(new Set(asked).size).toBe(2);
  });

  test.each([
    ["nothing", () => new Response()],
    ["another challenge", () => Response.json({ challenge: "other" })],
    ["null", () => Response.json(null)],
    ["text", (challenge: string) => new Response(challenge)],
    ["an error", (challenge: string) => Response.json({ challenge }, { status: 500 })],
    ["a redirect", () => Response.redirect("http://10.0.0.1/", 307)],
    ["a megabyte", (challenge: string) => Response.json({ challenge, more: "x".repeat(1 << 20) })],
  ])("that gets %s rejects the config", async (_what, answer) => {
    const { create } = await tries(setup({ challenge: true, dialer: answering(answer) }), {});
    await expect(create()).rejects.toMatchObject({ code: "InvalidParams", fields: [{ field: "url" }] });
  });

  test("contains no secret, because it may reach someone else", async () => {
    const bodies: string[] = [];
    const plain = dialerTo("93.184.215.14");
    const dialer: Dialer = {
      ...plain,
      fetch: (target, addresses, init) => {
        bodies.push(JSON.stringify(init));
        return plain.fetch(target, addresses, init);
      },
    };
    const { create } = await tries(setup({ challenge: true, dialer }), {
      token: "the-token",
      ...bearer("the-credentials"),
    });
    await expect(create()).rejects.toMatchObject({ code: "InvalidParams" });
    expect(bodies).toHaveLength(1);
    expect(bodies.join()).not.toMatch(/the-token|the-credentials/);
  });

  test("is sent to as many receivers at a time as the server's limit for posts", async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const dialer: Dialer = {
      ...dialerTo("93.184.215.14"),
      async fetch(_, __, { body = "{}" }) {
        await held;
        return new Response(body);
      },
    };
    const { create } = await tries(setup({ challenge: true, dialer, concurrency: 2 }), {});
    const calls = [create(), create(), create()];
    await expect(Promise.race(calls)).rejects.toMatchObject({ code: "Unavailable", retryAfter: 1 });
    release();
    expect((await Promise.allSettled(calls)).filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  });

  test("is not sent for another caller's task", async () => {
    const asked: string[] = [];
    const dialer = answering((challenge) => {
      asked.push(challenge);
      return Response.json({ challenge });
    });
    const { service, send } = setup({ challenge: true, dialer });
    const { id: taskId } = await send("hi", { subject: "eve" });
    await expect(service.call("CreateTaskPushNotificationConfig", { taskId, url }, ada)).rejects.toMatchObject({
      code: "TaskNotFound",
    });
    expect(asked).toEqual([]);
  });
});
