import { defineAgent, type Principal, type Store, type Turn } from "@parley/server";
import { callContext, inProcess } from "@parley/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { placeOfTest, stores } from "./stores.ts";

/** The server stores no claims of a token, except those that an agent declares in `keepClaims`. */

const principal: Principal = {
  subject: "ada",
  organization: "engines",
  scopes: ["count"],
  claims: {
    locale: "en-GB",
    email: "claim-that-must-not-be-stored@example.com",
    sid: "session-that-must-not-be-stored",
  },
};

const stored: Principal = { subject: "ada", organization: "engines", scopes: ["count"], claims: { locale: "en-GB" } };

function served(store: Store, seen: Principal[]) {
  let leave = (): void => {};
  const left = new Promise<void>((resolve) => (leave = resolve));
  const agent = defineAgent({
    name: "Claims",
    description: "Sees who asks",
    version: "1",
    skills: [],
    resumable: true,
    keepClaims: ["locale", "absent"],
    async *onMessage(turn: Turn) {
      seen.push(turn.principal);
      if (turn.text === "reply") return turn.reply("Hello");
      if (turn.text === "ask") return yield turn.inputRequired("Which?");
      yield turn.working("begun");
      if (turn.text === "wait" && turn.attempt === 1) {
        await Promise.race([left, new Promise((resolve) => turn.signal.addEventListener("abort", resolve))]);
      }
      return undefined;
    },
  });
  const made = inProcess(agent, { store, conversations: "store" });
  const send = async (text: string, taskId?: string, returnImmediately = false) => {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER" as const, parts: [{ text }] };
    const request = {
      message: taskId === undefined ? message : { ...message, taskId },
      configuration: { returnImmediately },
    };
    return (await made.service.call("SendMessage", request, callContext({ principal }))).payload.value.task?.id ?? "";
  };
  return { ...made, send, leave };
}

describe.each(stores)("the claims of a caller, on %s", (kind) => {
  it("are complete in a turn that begins at once, and only the declared ones in a turn that waited or was resumed", async () => {
    const place = await placeOfTest(kind);
    const store = await place.open();

    const seen: Principal[] = [];
    const first = served(store, seen);
    await first.send("reply");
    const asked = await first.send("ask");
    await first.send("Go", asked);
    expect(seen).toEqual([principal, principal, principal]);

    const task = await first.send("wait", undefined, true);
    await expect.poll(() => seen.length).toBe(4);
    await first.send("queued", task, true);
    first.leave();
    await expect.poll(() => seen.length).toBe(5);
    expect(seen.slice(3)).toEqual([principal, stored]);

    const second = served(store, seen);
    await second.send("wait", undefined, true);
    await expect.poll(() => seen.length).toBe(6);
    await second.engine.close();
    await first.engine.close();
    if (kind !== "memory") await store.close();

    if (kind !== "memory") {
      const bytes = await place.written();
      expect(bytes).toContain("en-GB");
      for (const secret of ["must-not-be-stored", '"email"', '"sid"']) expect(bytes).not.toContain(secret);
    }

    const reopened = await place.open();
    onTestFinished(() => reopened.close());
    const third = served(reopened, seen);
    onTestFinished(() => third.engine.close());
    await expect.poll(() => seen.length).toBe(7);
    expect(seen[6]).toEqual(stored);
  });
});
