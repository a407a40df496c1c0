import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Task } from "@parley/a2a";
import { connect, readAuthorization } from "@parley/a2a/client";
import { serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { expect, it, onTestFinished } from "vitest";
import { reservePort } from "../../../test/crash/supervisor.ts";
import { logInAt } from "../../../test/identity/links.ts";
import { startProvider } from "../../../test/identity/provider.ts";
import { keepSecret } from "../../../test/secrets.ts";
import { addressDesk } from "../agent.ts";
import { recordsOf } from "../records.ts";
import { read } from "../scripted.ts";

const clientSecret = "secret-of-the-address-desk-0123456789";

/** The agent over HTTP, with SQLite in a folder, and an OpenID provider that knows it. */
async function given() {
  const folder = await mkdtemp(join(tmpdir(), "parley-address-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const store = await sqliteStore({ path: join(folder, "tasks.db") });
  onTestFinished(() => store.close());
  const port = await reservePort();
  const redirectUri = `http://127.0.0.1:${port}/.well-known/parley/authorization`;
  const provider = await startProvider({
    clients: [{ client_id: "address-desk", client_secret: clientSecret, redirect_uris: [redirectUri] }],
  });
  onTestFinished(() => provider.close());
  const records = recordsOf(provider.issuer);
  const used: string[] = [];
  const agent = addressDesk({
    login: { server: provider.issuer, clientId: "address-desk", clientSecret },
    read,
    change: (accessToken, change) => {
      used.push(keepSecret(accessToken));
      return records.change(accessToken, change);
    },
  });
  const server = await serve(agent, { port, store, logger: false });
  onTestFinished(() => server.close());
  const client = await connect(server.url);
  const conversation = client.conversation();
  return {
    client,
    used,
    records: records.all,
    say: async (said: string) => (await conversation.send(said)).task!,
    stored: async () =>
      (await Promise.all((await readdir(folder)).map((file) => readFile(join(folder, file), "latin1")))).join(""),
  };
}

const question = ({ status }: Task) => status.message?.parts[0]?.text;

it("asks for what is missing, then for a login, and goes on by itself after it (A2A 1.0 §7.6)", async () => {
  const { client, say, records, used, stored } = await given();
  const asked = await say("Change my address to 221B Baker Street");
  expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect(question(asked)).toContain("telephone number");
  const { id, status } = await say("+44 20 7946 0000");
  expect(id).toBe(asked.id);
  expect(status.state).toBe("TASK_STATE_AUTH_REQUIRED");
  expect(records.size).toBe(0);
  expect(status.message?.parts[0]?.text).toContain("Change the address in your account to 221B Baker Street");
  expect((await logInAt(readAuthorization(status.message)?.url ?? "")).status).toBe(200);
  // Nobody sends the task another message.
  const task = await client.waitFor(id, { until: (each) => each.status.state === "TASK_STATE_COMPLETED" });
  expect(task.artifacts?.[0]?.parts[0]?.text).toBe("ada lives at 221B Baker Street.");
  expect([...records]).toEqual([["ada", { address: "221B Baker Street", phone: "+44 20 7946 0000" }]]);
  // The token was used once, and stands neither in the task nor in the files of the database.
  expect(used).toHaveLength(1);
  const everything = JSON.stringify(await client.getTask(id)) + (await stored());
  expect(everything).toContain("221B Baker Street");
  for (const secret of [used[0] ?? "", clientSecret]) expect(everything).not.toContain(secret);
});

it("says that an email address is no postal one, and takes the next answer", async () => {
  const { say } = await given();
  expect(question(await say("Change my address to ada@example.com"))).toMatch(/^ada@example.com is an email address/);
  expect(question(await say("221B Baker Street"))).toContain("telephone number");
});

it("asks for the address where there is none", async () => {
  const { say } = await given();
  expect(question(await say("My number is +44 20 7946 0000"))).toBe("What is the new address?");
  expect((await say("221B Baker Street")).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
});

it("changes nothing where the login is refused (A2A 1.0 §7.6)", async () => {
  const { client, say, records } = await given();
  await say("Change my address to 221B Baker Street");
  const { id, status } = await say("+44 20 7946 0000");
  const link = readAuthorization(status.message)?.url ?? "";
  const request = new URL(link).searchParams.get("request") ?? "";
  const refused = await fetch(link, { method: "POST", body: new URLSearchParams({ request, decision: "deny" }) });
  expect(refused.status).toBe(200);
  const task = await client.waitFor(id, { until: (each) => each.status.state === "TASK_STATE_FAILED" });
  expect(task.artifacts ?? []).toEqual([]);
  expect(records.size).toBe(0);
});
