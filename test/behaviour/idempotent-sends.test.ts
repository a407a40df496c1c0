import { describe, expect, test } from "vitest";
import { A2AError, connect } from "@parley/a2a";
import { bearer } from "@parley/a2a/auth";
import { defineExtension, idempotentSends } from "@parley/a2a/extensions";
import { defineAgent, memoryStore, type Agent } from "@parley/server";
import { idempotentSendExtension, resumeExtension } from "@parley/a2a/internal/protocol/index";
import { call, eventsOf, plainBindings, served, taskIn } from "./plain-client.ts";

/* Tests the numbered promises of packages/a2a/src/extensions/idempotent-sends/README.md with plain `fetch`. */

const card = { name: "Booking", description: "Books", version: "1.0.0", skills: [] };

/** Creates an agent that reports how many times it was called. */
function counting(): Agent {
  let calls = 0;
  return defineAgent({
    ...card,
    async *onMessage(turn) {
      calls += 1;
      if (turn.text === "reply") return turn.reply(`reply ${calls}`);
      if (turn.text === "ask") return yield turn.inputRequired(`question ${calls}`);
      yield turn.completed(`call ${calls}`);
      return undefined;
    },
  });
}

const once = (): { messageId: string } => ({ messageId: crypto.randomUUID() });
const textOf = async (response: Promise<Response>): Promise<string | undefined> => {
  const json = await (await response).text();
  return taskIn(json)?.text ?? json;
};

describe.each(plainBindings)("over $name", ({ send, stream }) => {
  test("1, 2: a repeated send gets the task of the first one, even after a restart of the server", async () => {
    const store = memoryStore();
    const agent = counting();
    const server = await served(agent, { store });
    const id = once();
    expect(await textOf(call(server, send("go", id)))).toBe("call 1");
    expect(await textOf(call(server, send("go", id)))).toBe("call 1");
    await server.close();
    expect(await textOf(call(await served(agent, { store }), send("go", id)))).toBe("call 1");
  });

  test("1: concurrent sends are one", async () => {
    const server = await served(counting());
    const id = once();
    const texts = await Promise.all(Array.from({ length: 8 }, () => textOf(call(server, send("go", id)))));
    expect(new Set(texts)).toEqual(new Set(["call 1"]));
  });

  test("2: the stream of a repeated send has the task and its end", async () => {
    const server = await served(counting());
    const id = once();
    await eventsOf(await call(server, stream("go", id)));
    const events = await eventsOf(await call(server, stream("go", id)));
    expect(taskIn(events[0]?.json ?? "")).toBeDefined();
    expect(events.map(({ json }) => json).join()).toContain("call 1");
  });

  test("2: a direct reply is repeated, with its messageId", async () => {
    const server = await served(counting());
    const id = once();
    const first = await (await call(server, send("reply", id))).text();
    expect(first).toContain("reply 1");
    expect(await (await call(server, send("reply", id))).text()).toBe(first);
  });

  test("2: the answer to a message that continues a task is repeated, too", async () => {
    const server = await served(counting());
    const { id = "" } = taskIn(await (await call(server, send("ask"))).text()) ?? {};
    const answer = { ...once(), taskId: id };
    expect(await textOf(call(server, send("go", answer)))).toBe("call 2");
    expect(await textOf(call(server, send("go", answer)))).toBe("call 2");
  });

  test("3: a rejected send is forgotten", async () => {
    let open = false;
    const guard = defineExtension({
      uri: "https://example.com/extensions/guard/v1",
      onAccept(input) {
        if (open) return input;
        throw new A2AError("InvalidParams", "Not now");
      },
    });
    const server = await served(counting(), { extensions: [guard] });
    const id = once();
    const headers = { "a2a-extensions": guard.uri };
    expect(await textOf(call(server, send("go", id), headers))).toContain("Not now");
    open = true;
    expect(await textOf(call(server, send("go", id), headers))).toBe("call 1");
  });

  test("4: other content under the same id is another message, or rejected, as the operator configures", async () => {
    const id = once();
    const server = await served(counting());
    expect(await textOf(call(server, send("go", id)))).toBe("call 1");
    expect(await textOf(call(server, send("continue", id)))).toBe("call 2");
    const strict = await served(counting(), { dedupe: { onConflict: "refuse" } });
    expect(await textOf(call(strict, send("go", id)))).toBe("call 1");
    expect(await textOf(call(strict, send("continue", id)))).toContain("This messageId is taken");
    expect(await textOf(call(strict, send("go", id)))).toBe("call 1");
  });

  test("6: the same id of another caller is another send", async () => {
    const callers = { "secret-of-ada-0123456789": { subject: "ada" }, "secret-of-bob-0123456789": { subject: "bob" } };
    const server = await served(counting(), { authenticator: bearer(callers) });
    const id = once();
    const as = (token: string): Promise<string | undefined> =>
      textOf(call(server, send("go", id), { authorization: `Bearer ${token}` }));
    expect(await as("secret-of-ada-0123456789")).toBe("call 1");
    expect(await as("secret-of-bob-0123456789")).toBe("call 2");
    expect(await as("secret-of-ada-0123456789")).toBe("call 1");
  });
});

test("a send over one binding and version is the same over another", async () => {
  const server = await served(counting());
  const id = once();
  const texts: unknown[] = [];
  for (const { send } of plainBindings) texts.push(await textOf(call(server, send("go", id))));
  expect(texts).toEqual(["call 1", "call 1", "call 1"]);
});

test("the card declares it, unless the server does not remember messages", async () => {
  const client = await connect((await served(counting())).url, { extensions: [idempotentSends] });
  expect(client.ext(idempotentSends).declared?.uri).toBe(idempotentSendExtension);
  const other = await connect((await served(counting(), { dedupe: false })).url, { extensions: [idempotentSends] });
  expect(other.ext(idempotentSends).declared).toBeUndefined();
});

test("a server that cannot keep a promise of a card is not created", async () => {
  const promised = (error: unknown): string => (error instanceof A2AError ? error.message : String(error));
  const repeats = { ...counting(), extensions: [idempotentSends] };
  await expect(served(repeats, { dedupe: false }).catch(promised)).resolves.toBe(
    `This cannot be served: extensions cannot promise ${idempotentSendExtension} with \`dedupe: false\``,
  );
  const resumes = { ...counting(), capabilities: { streaming: false, extensions: [{ uri: resumeExtension }] } };
  await expect(served(resumes).catch(promised)).resolves.toContain(`cannot promise ${resumeExtension} of an agent`);
});
