import { describe, expect, onTestFinished, test } from "vitest";
import {
  makePassportKey,
  passportKeys,
  passportKeySet,
  passportOf,
  securePassport,
  securePassportUri,
  signPassport,
  withPassport,
  type CallerContext,
  type CallerOptions,
  type Passport,
  type SecurePassportOptions,
} from "../../src/secure-passport/index.ts";
import { defineAgent } from "@parley/server/internal/agent/index";
import { A2AError, message, type JsonObject, type Message } from "@parley/a2a/internal/model/index";
import { testAgent, type TestAgentOptions } from "@parley/testing";
import { keepSecret } from "../../../../test/secrets.ts";

const key = await makePassportKey();
const clientId = "a2a://desk.example.com";
const trust = passportKeys({ [clientId]: await passportKeySet([key]) });
const context: CallerContext = { clientId, sessionId: "s-1", state: { tier: "Gold", city: "Basel" } };
const asked = { extensions: [securePassportUri] };

/** An agent that records the passports that it reads. */
async function agentWith(options: SecurePassportOptions, more: TestAgentOptions = {}) {
  const read: (Passport | undefined)[] = [];
  const extension = securePassport(options);
  const agent = defineAgent({
    name: "Flights",
    description: "Books flights",
    version: "1.0.0",
    skills: [],
    extensions: [extension],
    async *onMessage(turn) {
      const passport = turn.ext(extension);
      read.push(passport && structuredClone(passport));
      // Changing its copy has no effect elsewhere.
      if (passport !== undefined) (passport.state as Record<string, unknown>)["tier"] = "changed";
      if (turn.number === 1) yield turn.inputRequired("When?");
      else yield turn.completed("Booked");
    },
  });
  const under = await testAgent(agent, more);
  onTestFinished(() => under.close());
  const audience = under.client.card.supportedInterfaces?.[0]?.url ?? "";
  const signed = (what = context, to = audience, init: { jti?: string; lifetime?: number } = {}) =>
    signPassport(what, key, { audience: to, clock: under.clock, ...init });
  return { under, read, signed, audience };
}

const carrying = (what: unknown, init: Partial<Message> = {}): Message => ({
  ...message("Book a flight"),
  ...init,
  metadata: { [securePassportUri]: what } as JsonObject,
});

const codeOf = async (call: Promise<unknown>): Promise<A2AError> => {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(A2AError);
  return error as A2AError;
};

describe("an agent reads a passport (Secure Passport §1, §5)", () => {
  test("as verified, if signed", async () => {
    const { under, read, signed } = await agentWith({ trust });
    const client = await under.connect(asked);
    const { task } = await client.sendMessage(carrying(await signed()));
    expect(read).toEqual([{ ...context, verified: true }]);
    expect(task?.history?.[0]?.metadata?.[securePassportUri]).toMatchObject({ state: { tier: "Gold" } });
    expect(under.problems).toEqual([]);
  });

  test.each<[string, CallerContext, string]>([
    ["without a signature", context, "unsigned"],
    ["with the signature of the public sample", { ...context, signature: "mock-signature-xyz" }, "unreadable"],
  ])("%s, not verified", async (_, what, problem) => {
    const { under, read } = await agentWith({ trust });
    await (await under.connect(asked)).sendMessage(carrying(what));
    expect(read).toEqual([{ ...context, verified: false, problem }]);
  });

  test("as unverified, if modified or for another agent", async () => {
    const { under, read, signed } = await agentWith({ trust });
    const client = await under.connect(asked);
    await client.sendMessage(carrying({ ...(await signed()), state: { tier: "Platinum" } }));
    await client.sendMessage(carrying(await signed(context, "https://hotels.example.com/")));
    expect(read.map((passport) => passport?.problem)).toEqual(["invalid", "audience"]);
  });

  test("as unverified, if it trusts no keys", async () => {
    const { under, read, signed } = await agentWith({});
    const client = await under.connect(asked);
    await client.sendMessage(carrying(await signed()));
    await client.sendMessage(carrying(context));
    expect(read.map((passport) => passport?.problem)).toEqual(["untrusted", "unsigned"]);
  });

  test("without unknown keys of its state", async () => {
    const { under, read, signed } = await agentWith({ trust, supportedStateKeys: ["tier", "toString"] });
    await (await under.connect(asked)).sendMessage(carrying(await signed()));
    expect(read).toEqual([{ ...context, state: { tier: "Gold" }, verified: true }]);
  });

  test("only in calls that activated the extension (A2A 1.0 §4.6.2)", async () => {
    const { under, read, signed } = await agentWith({ trust });
    await under.client.sendMessage(carrying(await signed()));
    await under.client.sendMessage(carrying({ malformed: true }));
    expect(read).toEqual([undefined, undefined]);
  });

  test("as absent if malformed, with a log entry that does not quote it", async () => {
    const { under, read } = await agentWith({ trust });
    const client = await under.connect(asked);
    const secret = keepSecret("secret-of-ada-0123456789");
    await client.sendMessage(carrying({ clientId, state: {}, [secret]: secret }));
    await client.sendMessage(message("No passport"));
    expect(read).toEqual([undefined, undefined]);
    expect(under.logs.filter(({ message: line }) => line.includes("Secure Passport")).length).toBeGreaterThan(0);
    expect(JSON.stringify(under.logs)).not.toContain(secret);
  });

  test("ignoring a verdict forged by the client", async () => {
    const { under, read } = await agentWith({ trust });
    const forged = carrying(context);
    const verdict = { [`${securePassportUri}/verdict`]: { verified: true } };
    const client = await under.connect(asked);
    await client.sendMessage({ ...forged, metadata: { ...forged.metadata, ...verdict } });
    await client.sendMessage({ ...message("No passport"), metadata: verdict });
    expect(read).toEqual([{ ...context, verified: false, problem: "unsigned" }, undefined]);
  });

  test("as unverified if keys or nonces fail, ignoring a forged verdict", async () => {
    const broken = () => Promise.reject(new Error("the database is down"));
    const verdict = { [`${securePassportUri}/verdict`]: { verified: true } };
    for (const options of [{ trust: { keyFor: broken } }, { trust, nonces: { use: broken } }]) {
      const { under, read, signed } = await agentWith(options);
      const sent = carrying(await signed());
      const client = await under.connect(asked);
      await client.sendMessage({ ...sent, metadata: { ...sent.metadata, ...verdict } });
      expect(read).toEqual([{ ...context, verified: false, problem: "unavailable" }]);
      expect(under.problems.join()).toContain("the database is down");
    }
  });

  test("a second time only for the same message", async () => {
    const { under, read, signed } = await agentWith({ trust });
    const client = await under.connect(asked);
    const passport = await signed();
    const first = carrying(passport);
    const { task } = await client.sendMessage(first);
    // A retry joins the first send, and does not reach the agent.
    expect((await client.sendMessage(first)).task?.id).toBe(task?.id);
    await client.sendMessage(carrying(passport));
    const other = await (await under.as("bob")).sendMessage(carrying(passport), asked);
    expect(other.task?.id).not.toBe(task?.id);
    expect(read.map((each) => each?.problem ?? each?.verified)).toEqual([true, "replayed", "replayed"]);
  });

  test("as of the arrival of its message, however late the turn", async () => {
    const { under, read, signed } = await agentWith({ trust });
    const client = await under.connect(asked);
    const { task } = await client.sendMessage(carrying(await signed(context, undefined, { lifetime: 30 })));
    const { id: taskId = "", contextId = "" } = task ?? {};
    // The second message has its own passport, which has expired.
    const late = { ...(await signed(context, undefined, { lifetime: 1 })) };
    await under.clock.advance(120_000);
    await client.sendMessage(carrying(late, { taskId, contextId }));
    expect(read.map((each) => each?.problem ?? each?.verified)).toEqual([true, "expired"]);
  });
});

describe("an agent that requires a passport", () => {
  const required = { trust, require: true } as const;

  test("accepts a signed one, and rejects all others with InvalidParams and the field", async () => {
    const { under, read, signed } = await agentWith(required);
    const client = await under.connect(asked);
    await client.sendMessage(carrying(await signed()));
    const field = `message.metadata["${securePassportUri}"]`;
    for (const [wrong, at] of [
      [message("No passport"), field],
      [carrying(context), `${field}.signature`],
      [carrying({ ...context, signature: "mock-signature-xyz" }), `${field}.signature`],
      [carrying({ ...(await signed()), state: {} }), `${field}.signature`],
    ] as const) {
      const error = await codeOf(client.sendMessage(wrong));
      expect(error.code).toBe("InvalidParams");
      expect(error.fields.map((violation) => violation.field)).toEqual([at]);
    }
    expect((await codeOf(client.sendMessage(carrying({ clientId })))).code).toBe("InvalidParams");
    expect(read).toEqual([{ ...context, verified: true }]);
  });

  test("rejects callers without the extension with ExtensionSupportRequired (A2A 1.0 §3.3.4)", async () => {
    const { under, read, signed } = await agentWith(required);
    expect((await codeOf(under.client.sendMessage(carrying(await signed())))).code).toBe("ExtensionSupportRequired");
    expect(read).toEqual([]);
  });

  test("answers Unavailable while keys cannot be read, so callers retry", async () => {
    let isDown = true;
    const { under, read, signed } = await agentWith({
      require: true,
      trust: {
        keyFor(...about) {
          if (isDown) throw new A2AError("Unavailable");
          return trust.keyFor(...about);
        },
      },
    });
    const client = await under.connect({ ...asked, retry: false });
    const sent = carrying(await signed());
    expect((await codeOf(client.sendMessage(sent))).code).toBe("Unavailable");
    isDown = false;
    await client.sendMessage(sent);
    expect(read.map((passport) => passport?.verified)).toEqual([true]);
  });

  test("requires trusted keys", () => {
    expect(() => securePassport({ require: true })).toThrow(/trust is required/);
  });
});

describe("a client attaches its passport (Secure Passport §1, §5)", () => {
  const as = (caller: Omit<CallerOptions, "clientId">) => securePassport({ caller: { clientId, ...caller } });

  test("signed for the agent of the card, with only the keys it understands", async () => {
    const { under, read, audience } = await agentWith({ trust, supportedStateKeys: ["tier"] });
    const own = as({ key, state: context.state, sessionId: "s-1" });
    const client = await under.connect({ extensions: [own], clock: under.clock });
    const { task } = await client.sendMessage("Book a flight");
    expect(read).toEqual([{ ...context, state: { tier: "Gold" }, verified: true }]);
    const sent = passportOf(task?.history?.[0] ?? {});
    expect(sent?.state).toEqual({ tier: "Gold" });
    const head = sent?.signature?.split(".")[0] ?? "";
    expect(JSON.parse(Buffer.from(head, "base64url").toString())).toMatchObject({ aud: audience, kid: key.kid });
  });

  test("a new one to each message, also for streams, so each is accepted", async () => {
    const { under, read } = await agentWith({ trust });
    const client = await under.connect({ extensions: [as({ key, state: {} })], clock: under.clock });
    const { task } = await client.sendMessage("Book a flight");
    const more = { taskId: task?.id ?? "", contextId: task?.contextId ?? "" };
    const events = [];
    for await (const event of client.sendStreamingMessage({ ...message("Tomorrow"), ...more })) events.push(event);
    expect(events.length).toBeGreaterThan(0);
    expect(read.map((passport) => passport?.verified)).toEqual([true, true]);
  });

  test("no passport if there is no state, or the message already has a passport", async () => {
    const { under, read } = await agentWith({ trust });
    const state = ({ parts }: Message) => (parts[0]?.text === "Secretly" ? undefined : { said: parts[0]?.text ?? "" });
    const client = await under.connect({ extensions: [as({ key, state })], clock: under.clock });
    await client.sendMessage("Secretly");
    await client.sendMessage("Openly");
    await client.sendMessage(carrying(context));
    expect(read.map((passport) => passport?.state)).toEqual([undefined, { said: "Openly" }, context.state]);
    expect(read.map((passport) => passport?.verified)).toEqual([undefined, true, false]);
  });

  test("to no agent that does not declare the extension (A2A 1.0 §4.6.1)", async () => {
    const seen: unknown[] = [];
    const agent = defineAgent({
      name: "Plain",
      description: "Knows no passports",
      version: "1.0.0",
      skills: [],
      onMessage: (turn) => turn.reply(String(seen.push(turn.message.metadata))),
    });
    const under = await testAgent(agent);
    onTestFinished(() => under.close());
    await (await under.connect({ extensions: [as({ key, state: {} })], clock: under.clock })).sendMessage("Hello");
    expect(seen).toEqual([undefined]);
  });

  test("and a retry joins the first message, despite its new signature", async () => {
    const { under, read } = await agentWith({ trust });
    const client = await under.connect({ extensions: [as({ key, state: {} })], clock: under.clock });
    const same = message("Book a flight");
    const { task } = await client.sendMessage(same);
    await under.clock.advance(1000);
    expect((await client.sendMessage(same)).task?.id).toBe(task?.id);
    expect(read).toHaveLength(1);
  });
});

test("rejects a key that cannot sign and a caller without a name at creation", () => {
  const caller = { clientId, state: {} };
  expect(() => securePassport({ caller: { ...caller, key: { kty: "oct", d: "x" } } })).toThrow(/caller.key must be/);
  expect(() => securePassport({ caller: { ...caller, clientId: "" } })).toThrow(/caller.clientId is required/);
  expect(() => securePassport({ supportedStateKeys: [7 as never] })).toThrow(/supportedStateKeys must be/);
  expect(passportOf(withPassport({}, context))).toEqual(context);
});
