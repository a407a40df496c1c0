import { describe, expect, test } from "vitest";
import { fromBase64, toBase64 } from "@parley/a2a/model";
import type { TaskKey } from "@parley/server/store";
import { createSealer, pushKeyring, rememberLast, type Sealer } from "../../src/push/keys.ts";

const task: TaskKey = { agent: "weather", owner: '[null,"ada"]', taskId: "t-1" };
const secrets = { token: "the token", credentials: "the credentials" };
/** Creates a sealer with one key for each byte. The first key seals. */
const sealerOf = (first: number, ...others: readonly number[]): Sealer =>
  createSealer(pushKeyring([key(first), ...others.map(key)]));
const key = (byte: number): Uint8Array<ArrayBuffer> => new Uint8Array(32).fill(byte);

describe("sealed secrets of webhooks", () => {
  test("open again, and are not readable", async () => {
    const sealer = sealerOf(1);
    const sealed = await sealer.seal(secrets, task, "c-1");
    expect(await sealer.open(sealed, task, "c-1")).toEqual(secrets);
    expect(sealed).not.toContain("token");
    for (const part of sealed.split(".").slice(1)) {
      expect(new TextDecoder("latin1").decode(fromBase64(part))).not.toMatch(/token|credentials/);
    }
  });

  test("are different each time, so equal secrets cannot be recognized", async () => {
    const sealer = sealerOf(1);
    expect(await sealer.seal(secrets, task, "c-1")).not.toBe(await sealer.seal(secrets, task, "c-1"));
  });

  test.each([
    ["agent", { ...task, agent: "other" }, "c-1"],
    ["owner", { ...task, owner: "other" }, "c-1"],
    ["task", { ...task, taskId: "t-2" }, "c-1"],
    ["config", task, "c-2"],
  ])("do not open for another %s", async (_, other, config) => {
    const sealer = sealerOf(1);
    const sealed = await sealer.seal(secrets, task, "c-1");
    await expect(sealer.open(sealed, other, config)).rejects.toThrow("sealed for something else");
  });

  test("open with each key of the list, and are sealed with the first one: a key is replaced without a gap", async () => {
    const before = await sealerOf(1).seal(secrets, task, "c-1");
    const both = sealerOf(2, 1);
    expect(await both.open(before, task, "c-1")).toEqual(secrets);
    const after = await both.seal(secrets, task, "c-1");
    expect(await sealerOf(2).open(after, task, "c-1")).toEqual(secrets);
    await expect(sealerOf(1).open(after, task, "c-1")).rejects.toThrow("a key that this server does not have");
  });

  test("do not open after a bit of them was changed", async () => {
    const sealer = sealerOf(1);
    const [id, iv, text = ""] = (await sealer.seal(secrets, task, "c-1")).split(".");
    const bytes = fromBase64(text);
    for (const at of [0, bytes.length - 1]) {
      const changed = Uint8Array.from(bytes, (byte, index) => (index === at ? byte ^ 1 : byte));
      await expect(sealer.open([id, iv, toBase64(changed)].join("."), task, "c-1")).rejects.toThrow("it was changed");
    }
  });

  test.each(["", ".AAAA.AAAA", "..", "key.?.?", "key"])(
    "that are damaged (%j) reject with an error, without other effects",
    async (text) => {
      await expect(sealerOf(1).open(text, task, "c-1")).rejects.toThrow(Error);
    },
  );

  test("are opened once for the events of a config, and again if they were sealed again or did not open", async () => {
    const sealer = sealerOf(1);
    const opened: string[] = [];
    let fails = true;
    const open = rememberLast(async (sealed, ...about) => {
      opened.push(sealed);
      if (fails) throw new Error("not now");
      return sealer.open(sealed, ...about);
    });
    const [one, two] = [await sealer.seal(secrets, task, "c-1"), await sealer.seal({ token: "t" }, task, "c-1")];
    await expect(open(one, task, "c-1")).rejects.toThrow("not now");
    fails = false;
    for (const [sealed, found] of [
      [one, secrets],
      [one, secrets],
      [two, { token: "t" }],
    ] as const) {
      expect(await open(sealed, task, "c-1")).toEqual(found);
    }
    expect(opened).toEqual([one, one, two]);
  });
});
