import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve, type Task } from "@parley/node";
import { connect, readAuthorization } from "@parley/a2a";
import { sqliteStore } from "@parley/sql/sqlite";
import { expect, it, onTestFinished } from "vitest";
import { reservePort } from "../../../test/crash/supervisor.ts";
import { logInAt } from "../../../test/identity/links.ts";
import { startProvider } from "../../../test/identity/provider.ts";
import { keepSecret } from "../../../test/secrets.ts";
import { addressDesk, type AddressKind } from "../agent.ts";
import { recordsOf } from "../records.ts";
import { read } from "../scripted.ts";

const inEnglish = "Update the user's address to 221B Baker Street";
const clientSecret = "secret-of-the-address-desk-0123456789";

/** The agent over HTTP, with SQLite in a folder, and an OpenID provider with its client. */
async function given(holds: AddressKind = "postal") {
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
    holds,
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

it("asks for what is missing, then for a login, and continues on its own after it (A2A 1.0 §7.6)", async () => {
  const { client, say, records, used, stored } = await given();
  const asked = await say(inEnglish);
  expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect(question(asked)).toContain("phone number");
  const { id, status } = await say("+44 20 7946 0000");
  expect(id).toBe(asked.id);
  expect(status.state).toBe("TASK_STATE_AUTH_REQUIRED");
  expect(records.size).toBe(0);
  expect(status.message?.parts[0]?.text).toMatch(/^Yes, I can update the address\. .*: 221B Baker Street/);
  expect((await logInAt(readAuthorization(status.message)?.url ?? "")).status).toBe(200);
  // The task gets no further message.
  const task = await client.waitFor(id, { until: (each) => each.status.state === "TASK_STATE_COMPLETED" });
  expect(task.artifacts?.[0]?.parts[0]?.text).toBe("The address of ada is 221B Baker Street.");
  expect([...records]).toEqual([["ada", { language: "en", address: "221B Baker Street", phone: "+44 20 7946 0000" }]]);
  // The token was used once, and is neither in the task nor in the files of the database.
  expect(used).toHaveLength(1);
  const everything = JSON.stringify(await client.getTask(id)) + (await stored());
  expect(everything).toContain("221B Baker Street");
  for (const secret of [used[0] ?? "", clientSecret]) expect(everything).not.toContain(secret);
});

it("rejects an email address as a postal one, and accepts the next answer", async () => {
  const { say } = await given();
  expect(question(await say("Update the user's address to ada@example.com"))).toMatch(
    /^Sorry, I need a postal address/,
  );
  expect(question(await say("221B Baker Street"))).toContain("phone number");
});

it.each([
  {
    language: "English",
    order: inEnglish,
    wrongKind: "Sorry, I need an email address to update the profile, and you gave a postal one.",
    phone: "I would be happy to update the address. The account has no phone number, and I need one for that.",
    verify: /^Yes, I can update the address\. First you have to verify that it is you: ada@example\.com/,
    done: "The address of ada is ada@example.com.",
  },
  {
    language: "Chinese",
    order: "将用户的地址更新为 贝克街221B号",
    wrongKind: "抱歉,我需要电子邮件地址来更新用户资料,但您提供的是邮寄地址。",
    phone: "我很乐意更新地址。看起来该帐户没有电话号码。我需要那个号码才能完成地址更新。",
    verify: /^是的,我可以更新地址。但首先必须按照链接的步骤验证地址:ada@example\.com/,
    done: "ada 的地址是 ada@example.com。",
  },
])(
  "has the conversation of the guide in $language: an email address, a phone number, a link to verify it (What is A2A?)",
  async ({ order, wrongKind, phone, verify, done }) => {
    const { client, say } = await given("email");
    const asked = await say(order);
    expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(question(asked)).toBe(wrongKind);
    expect(question(await say("ada@example.com"))).toBe(phone);
    const { id, status } = await say("+44 20 7946 0000");
    expect(status.state).toBe("TASK_STATE_AUTH_REQUIRED");
    expect(question({ status } as Task)).toMatch(verify);
    expect((await logInAt(readAuthorization(status.message)?.url ?? "")).status).toBe(200);
    const task = await client.waitFor(id, { until: (each) => each.status.state === "TASK_STATE_COMPLETED" });
    expect(task.artifacts?.[0]?.parts[0]?.text).toBe(done);
  },
);

it("asks for the address if it is missing", async () => {
  const { say } = await given();
  expect(question(await say("My number is +44 20 7946 0000"))).toBe("What is the new address?");
  expect((await say("221B Baker Street")).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
});

it("changes nothing if the user declines the login (A2A 1.0 §7.6)", async () => {
  const { client, say, records } = await given();
  await say(inEnglish);
  const { id, status } = await say("+44 20 7946 0000");
  const link = readAuthorization(status.message)?.url ?? "";
  const request = new URL(link).searchParams.get("request") ?? "";
  const refused = await fetch(link, { method: "POST", body: new URLSearchParams({ request, decision: "deny" }) });
  expect(refused.status).toBe(200);
  const task = await client.waitFor(id, { until: (each) => each.status.state === "TASK_STATE_FAILED" });
  expect(task.artifacts ?? []).toEqual([]);
  expect(records.size).toBe(0);
});
