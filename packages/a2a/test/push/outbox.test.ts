import { describe, expect, it, vi } from "vitest";
import { chunk, completed, said, working } from "../../src/testing/store/given.ts";
import { gists, harness, receiver } from "./support.ts";

describe("deliveries of a config", () => {
  it("come one after the other, with their ids, numbers and generations (A2A 1.0 §4.3.3)", async () => {
    const { url, received } = await receiver();
    const { task, append, outbox, row } = harness();
    await task("t", { c: `${url}/hook?secret` });
    await append("t", working("t"), { ...working("t", { text: "still" }), trace: "00-1-2-01" }, said("hm"));
    await append("t", { ...chunk("t", "a", "one", { lastChunk: true }), trace: "00-a-b-01" }, completed("t"));
    outbox.start();
    await vi.waitFor(async () => expect(await row("t")).not.toHaveProperty("due"));
    expect(gists(received)).toEqual(["working", "a: one", "completed"]);
    expect(
      received.map(({ headers }) => [
        headers["webhook-id"],
        headers["parley-sequence"],
        headers["parley-generation"],
        headers["parley-attempt"],
        headers["traceparent"],
      ]),
    ).toEqual([
      ["n-c_2", "1", "2", "1", undefined],
      ["n-c_5", "2", "4", "1", "00-a-b-01"],
      ["n-c_6", "3", "5", "1", undefined],
    ]);
    const [first] = received;
    expect(first?.headers).toMatchObject({ "content-type": "application/a2a+json", "a2a-version": "1.0" });
    expect(first?.headers["webhook-signature"]).toBe(`v1a,n-c_2.${String(first?.headers["webhook-timestamp"])}`);
    expect((await row("t"))?.config).toEqual({
      url: `${url}/hook?secret`,
      version: "1.0",
      created: 0,
      nonce: "n-c",
      cursor: 6,
      generation: 5,
      chunks: 6,
      state: "TASK_STATE_COMPLETED",
      sequence: 3,
      delivered: 3,
    });
  });
});
