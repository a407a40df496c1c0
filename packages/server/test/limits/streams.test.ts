import { expect, onTestFinished, test } from "vitest";
import { defineAgent } from "../../src/agent/index.ts";
import { createHandler } from "../../src/handler.ts";
import { A2AError } from "@parley/a2a/internal/model/index";
import { memoryStore } from "../../src/store/index.ts";

/** Starts a server whose streams stay open until their readers disconnect. */
function serving() {
  const handler = createHandler(
    defineAgent({
      name: "Slow",
      description: "Takes its time.",
      version: "1.0.0",
      skills: [],
      async *onMessage(turn) {
        yield turn.working();
        await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve()));
      },
    }),
    {
      publicUrl: "https://agents.example.com",
      store: memoryStore(),
      facts: (_request, remoteAddress) => ({ remoteAddress: remoteAddress as string }),
      limits: { streamsPerCaller: 2 },
      authenticator: {
        securitySchemes: {},
        securityRequirements: [],
        authenticate(request) {
          const subject = request.header("x-name");
          if (subject === undefined) throw new A2AError("Unauthenticated");
          return { subject };
        },
      },
    },
  );
  onTestFinished(() => handler.close());
  const send = (name: string, text: string, address = "192.0.2.1"): Promise<Response> =>
    handler.fetch(
      new Request("https://agents.example.com/message:stream", {
        method: "POST",
        headers: { "x-name": name, "content-type": "application/json" },
        body: JSON.stringify({ message: { messageId: text, role: "ROLE_USER", parts: [{ text }] } }),
      }),
      address,
    );
  return { handler, send };
}

test("limits.streamsPerCaller rejects further streams of a caller until one of them ends", async () => {
  const { send } = serving();
  const [first, second] = [await send("ada", "1"), await send("ada", "2", "192.0.2.2")];
  const third = await send("ada", "3");
  expect([first.status, second.status, third.status]).toEqual([200, 200, 429]);
  expect(third.headers.get("retry-after")).toBe("5");
  expect(await third.json()).toMatchObject({ error: { status: "RESOURCE_EXHAUSTED" } });
  const other = await send("bob", "4");
  expect(other.status).toBe(200);

  await first.body?.cancel();
  const fourth = await send("ada", "5");
  expect([fourth.status, (await send("ada", "6")).status]).toEqual([200, 429]);
});

test("a stream that is rejected for another reason does not count", async () => {
  const { handler, send } = serving();
  const ask = (): Promise<Response> =>
    handler.fetch(
      new Request("https://agents.example.com/tasks/none:subscribe", { method: "POST", headers: { "x-name": "ada" } }),
      "192.0.2.1",
    );
  for (let at = 0; at < 5; at++) expect((await ask()).status).toBe(404);
  expect((await send("ada", "1")).status).toBe(200);
});
