import { bearer } from "@parley/a2a/auth";
import { codecV1 } from "@parley/a2a/protocol";
import { describe, expect, test } from "vitest";
import { obedient } from "./support/agents.ts";
import { GrpcJs, statusOf } from "./support/grpc-js.ts";
import { bindingOf, host, serve } from "./support/host.ts";

const service = "/a2a.v1.A2AService";
let count = 0;

/** A message of 0.3. Its parts are called content. */
function message(text: string, more: object = {}) {
  return { messageId: `old${count++}`, role: "ROLE_USER", content: [{ text }], ...more };
}

const waiting = { configuration: { blocking: true } };

interface TaskAnswer {
  readonly task: { readonly id: string; readonly contextId: string };
}

async function codeOf(call: Promise<unknown>): Promise<ReturnType<typeof statusOf>> {
  return call.then(() => expect.unreachable(), statusOf);
}

describe("the service of 0.3", () => {
  test("answers in 0.3, whatever version the metadata names", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    for (const version of [{}, { "a2a-version": "0.3" }, { "a2a-version": "1.0" }]) {
      const sent = await client.unary(`${service}/SendMessage`, { message: message("go"), ...waiting }, version);
      expect(sent.value).toMatchObject({
        task: {
          status: { state: "TASK_STATE_COMPLETED" },
          artifacts: [
            { artifactId: "a", parts: [{ text: "al" }, {}] },
            { parts: [{ file: { fileWithBytes: "AAEC", mimeType: "application/x", name: "f.bin" } }] },
          ],
          history: [{ content: [{ text: "go" }] }],
        },
      });
    }
  });

  test("does not wait unless requested", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const sent = await client.unary(`${service}/SendMessage`, { message: message("wait") });
    const name = `tasks/${(sent.value as TaskAnswer).task.id}`;
    const canceled = await client.unary(`${service}/CancelTask`, { name });
    expect(canceled.value).toMatchObject({ status: { state: "TASK_STATE_CANCELLED" } });
    // In proto3 an absent value is 0: the whole history.
    const got = await client.unary(`${service}/GetTask`, { name, historyLength: 0 });
    expect(got.value).toMatchObject({ history: [{ content: [{ text: "wait" }] }] });
  });

  test("ends its streams with an event marked final", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const events = await client.all(`${service}/SendStreamingMessage`, { message: message("go") });
    expect(events[0]).toHaveProperty("task");
    expect(events.at(-1)).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_COMPLETED" }, final: true } });
    const asked = await client.all(`${service}/SendStreamingMessage`, { message: message("ask") });
    expect(asked.at(-1)).toMatchObject({
      statusUpdate: { status: { state: "TASK_STATE_INPUT_REQUIRED" }, final: true },
    });
  });

  test("answers a subscription to a finished task with the task, and ends", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const sent = await client.unary(`${service}/SendMessage`, { message: message("go"), ...waiting });
    const name = `tasks/${(sent.value as TaskAnswer).task.id}`;
    const events = await client.all(`${service}/TaskSubscription`, { name });
    expect(events).toMatchObject([{ task: { status: { state: "TASK_STATE_COMPLETED" } } }]);
  });

  test("accepts names of resources, and rejects other names by field", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    expect(await codeOf(client.unary(`${service}/GetTask`, { name: "tasks/none" }))).toMatchObject({ code: 5 });
    expect(await codeOf(client.unary(`${service}/GetTask`, {}))).toMatchObject({ code: 3 });
    for (const name of ["none", "tasks/", "tasks/a/b", "jobs/a"]) {
      const refused = await codeOf(client.unary(`${service}/GetTask`, { name }));
      expect(refused.code, name).toBe(3);
      expect(refused.rpc, name).toMatchObject({ details: [{ fieldViolations: [{ field: "name" }] }, {}] });
    }
  });

  test("has methods for webhooks, which report that push notifications are not supported", async () => {
    await using server = await serve(obedient());
    using client = new GrpcJs(server.address);
    const name = "tasks/t/pushNotificationConfigs/c";
    const config = { name, pushNotificationConfig: { id: "c", url: "https://x.example/" } };
    const calls: [string, object][] = [
      ["CreateTaskPushNotificationConfig", { parent: "tasks/t", configId: "c", config }],
      ["GetTaskPushNotificationConfig", { name }],
      ["ListTaskPushNotificationConfig", { parent: "tasks/t" }],
      ["DeleteTaskPushNotificationConfig", { name }],
    ];
    for (const [method, value] of calls) {
      const { code, details } = await codeOf(client.unary(`${service}/${method}`, value));
      // The client of the SDK for Python 1.x recognizes the error by the name in front.
      expect([code, details], method).toEqual([
        12,
        "PushNotificationNotSupportedError: Push notifications are not supported",
      ]);
    }
  });

  test("returns the extended card in the form of 0.3", async () => {
    const authenticator = bearer({ good: { subject: "ann" } });
    await using server = await serve({ agent: obedient(), extendedCard: (card) => card }, { authenticator });
    using client = new GrpcJs(server.address);
    const { value } = await client.unary(`${service}/GetAgentCard`, {}, { authorization: "Bearer good" });
    expect(value).toMatchObject({
      protocolVersion: expect.stringMatching(/^0\.3/),
      name: "Obedient",
      url: expect.any(String),
      supportsAuthenticatedExtendedCard: true,
      security: [{ schemes: { bearer: {} } }],
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: expect.stringMatching(/bearer/i) } } },
    });
  });

  test("belongs to the only agent, at any path", async () => {
    await using server = await serve({ agent: obedient(), path: "/weather", tenant: "berlin" });
    using client = new GrpcJs(server.address);
    const { value } = await client.unary(`${service}/SendMessage`, { message: message("reply") });
    expect(value).toMatchObject({ message: { content: [{ text: "Hello" }] } });
  });

  test("is absent if 0.3 is not served", async () => {
    await using server = await host(bindingOf({}, { codecs: [codecV1] }));
    using client = new GrpcJs(server.address);
    expect(await codeOf(client.unary(`${service}/GetTask`, { name: "tasks/t" }))).toMatchObject({ code: 12 });
    const reflection = client.bidi("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    reflection.write({ listServices: "" });
    reflection.end();
    for await (const answer of reflection) expect(JSON.stringify(answer)).not.toContain('"a2a.v1.A2AService"');
  });
});
