import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { auditLog, defineAgent, serve, silentLogger, standardLogger } from "@parley/node";
import type { AuditRecord } from "@parley/a2a/internal/protocol/index";
import { anyOf, apiKey, basic, bearer, hashKey, hashPassword } from "@parley/a2a/auth";
import { sqliteStore } from "@parley/sql/sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { collect, keepSecret, secretsIn, taken } from "./secrets.ts";

/* A server's secrets appear only where they belong: not in its log, its audit, its responses or its files. */

const secret = (name: string): string => `secret-of-${name}-0123456789`;

/** The bytes of all files in a folder. */
async function everything(folder: string): Promise<string> {
  const files = await readdir(folder);
  const contents = await Promise.all(files.map((file) => readFile(join(folder, file), "latin1")));
  return contents.join("\n");
}

const agent = defineAgent({
  name: "Confidant",
  description: "Fails with what it was told",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield turn.working("listening");
    if (turn.text === "throw") throw new Error("the database is down");
    yield turn.inputRequired("more?");
  },
});

interface Confided {
  readonly url: string;
  readonly folder: string;
  readonly lines: string[];
  readonly records: AuditRecord[];
}

/** A server that logs everything it can, and stores its tasks in a file. */
async function serving(): Promise<Confided> {
  const folder = await mkdtemp(join(tmpdir(), "parley-redaction-"));
  const lines: string[] = [];
  const records: AuditRecord[] = [];
  const stream = {
    write(line: string) {
      lines.push(line);
      collect(line);
    },
  };
  const logger = standardLogger({ level: "debug", format: "json", stream });
  const written = auditLog(logger);
  const key = apiKey({ [await hashKey(secret("ada"))]: { subject: "ada" } }, { header: "x-api-key" });
  const password = basic({ bob: { password: await hashPassword(secret("bob")) } });
  const token = bearer({ [secret("eve")]: { subject: "eve" } });
  const store = await sqliteStore({ path: join(folder, "tasks.db") });
  const server = await serve(agent, {
    port: 0,
    signals: false,
    logger,
    store,
    authenticator: anyOf(key, password, token),
    audit(record) {
      records.push(record);
      written(record);
    },
    push: { keys: [btoa("k".repeat(32))], net: { allowLoopback: true, timeout: 1000 }, retryAfter: [1, 1] },
  });
  onTestFinished(async () => {
    await server.close({ grace: 0 });
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { url: server.url, folder, lines, records };
}

describe("the search for secrets", () => {
  test("finds them in clear, percent-encoded, in base64 at any place, and as signed tokens", () => {
    for (const text of [
      secret("ada"),
      `https://user:${secret("a-b")}@example.com/?x=1`,
      btoa(secret("ada")),
      btoa(`b:${secret("ada")}`),
      btoa(`bo:${secret("ada")}`),
      btoa(`bob:${secret("ada")}`),
      "Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJlLW9mLWEtdG9rZW4",
      keepSecret("an/opaque+token=="),
      encodeURIComponent(keepSecret("an/opaque+token==")),
    ]) {
      expect([text, secretsIn(`before ${text} after`).length > 0]).toEqual([text, true]);
    }
    expect(secretsIn("the secret of ada, 0123456789, eyJ.eyJ.x")).toEqual([]);
  });

  test("sees what the default logger of a server gets, with the causes of errors", () => {
    taken();
    const cause = new Error("outer", { cause: new Error(`inner ${secret("ada")}`) });
    silentLogger.warn("Something failed", { cause });
    const lines = taken();
    expect(lines.filter((line) => secretsIn(line).length > 0)).toHaveLength(1);
  });
});

describe("a server that logs everything", () => {
  test("has no credential in its log, its audit, its answers or its files", async () => {
    const { url, folder, lines, records } = await serving();
    const answers: string[] = [];
    const ask = async (path: string, headers: Record<string, string>, body?: unknown): Promise<Response> => {
      const init =
        body === undefined ? {} : { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) };
      const given = { "content-type": "application/json", "a2a-version": "1.0", ...headers };
      const response = await fetch(url + path, { ...init, headers: given });
      answers.push(`${[...response.headers].join("\n")}\n${await response.clone().text()}`);
      return response;
    };
    const ada = { "x-api-key": secret("ada") };
    const message = (text: string) => ({
      message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] },
    });

    // Right and wrong credentials, in each valid place, and in wrong places.
    const credentials: readonly Record<string, string>[] = [
      ada,
      { authorization: `Basic ${btoa(`bob:${secret("bob")}`)}` },
      { authorization: `Bearer ${secret("eve")}` },
      { "x-api-key": secret("nobody") },
      { authorization: `Basic ${btoa(`bob:${secret("wrong")}`)}` },
      { authorization: `Basic ${secret("not-base64")}` },
      { authorization: `Bearer ${secret("wrong")}` },
      { authorization: `Bearer ${secret("with spaces")} more` },
      { authorization: `${secret("scheme")} x` },
      { cookie: `session=${secret("cookie")}` },
      { ...ada, traceparent: secret("trace"), "a2a-extensions": secret("extension") },
      { ...ada, "a2a-version": secret("version") },
      {
        ...ada,
        forwarded: `for=${secret("proxy")}`,
        origin: `https://me:${secret("origin")}@page.example/${secret("page")}`,
      },
    ];
    for (const headers of credentials) await ask("/tasks?pageSize=1", headers);
    await ask(`/tasks?api_key=${secret("query")}&pageSize=x`, ada);
    await ask(`/tasks/${secret("path")}`, {});
    await ask("/message:send", ada, `{"message": "${secret("half")}`);

    // A webhook with secrets and without a receiver, and rejected webhooks.
    const { task } = (await (await ask("/message:send", ada, message("hi"))).json()) as {
      readonly task: { readonly id: string };
    };
    const hook = async (more: object): Promise<Response> =>
      ask(`/tasks/${task.id}/pushNotificationConfigs`, ada, { taskId: task.id, ...more });
    const authentication = { scheme: "Bearer", credentials: secret("hook") };
    expect(
      (await hook({ url: "http://127.0.0.1:1999/hook", token: secret("hook-token"), authentication })).status,
    ).toBe(200);
    await hook({ url: `http://user:${secret("url")}@127.0.0.1:1999/` });
    await hook({ url: `http://10.0.0.1/?key=${secret("private")}`, authentication });
    await ask("/message:send", ada, {
      ...message("throw"),
      configuration: { taskPushNotificationConfig: { url: "http://127.0.0.1:1999/hook", authentication } },
    });
    await expect.poll(() => records.some(({ event }) => event === "credential")).toBe(true);

    const where = { log: lines.join(""), audit: JSON.stringify(records), files: await everything(folder) };
    for (const [place, text] of Object.entries(where)) expect([place, secretsIn(text)]).toEqual([place, []]);
    // Responses repeat a caller's own invalid input, such as a task id, but never credentials.
    const own = /secret-of-(path|version|half|private|url)-0123456789/g;
    expect(secretsIn(answers.join("\n").replaceAll(own, ""))).toEqual([]);
    // All of these events occurred, so their secrets could have been logged.
    expect(new Set(records.map(({ event }) => event))).toEqual(
      new Set(["authentication", "task-created", "task-state", "credential"]),
    );
    expect(where.log).toContain("A task failed");
    expect(where.files).toContain("more?");
  });
});
