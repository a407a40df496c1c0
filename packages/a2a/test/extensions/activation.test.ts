import { describe, expect, test } from "vitest";
import { A2AError } from "../../src/model/index.ts";
import type { ActivatingCall, AnyExtension } from "../../src/protocol/index.ts";
import { harness, type Harness } from "../../../server/test/engine/support.ts";

const [one, two, three] = ["urn:example:one", "urn:example:two", "urn:example:three"] as const;

/** Serves an agent that reports the active extensions. */
function serving(...extensions: readonly AnyExtension[]): Harness {
  return harness(
    async function* (turn) {
      yield turn.artifact({ parts: [{ text: turn.extensions.join(" ") }] });
    },
    { extensions },
  );
}

/** Returns the extensions that a send has activated, according to the response and to the agent. */
async function activeIn(made: Harness, asked: readonly string[]): Promise<readonly string[]> {
  const { payload, extensions = [] } = await made.service.call(
    "SendMessage",
    { message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: "go" }] } },
    { principal: { subject: "anonymous" }, version: "1.0", extensions: asked },
  );
  expect(payload.value.task?.artifacts?.[0]?.parts[0]?.text).toBe(extensions.join(" "));
  return extensions;
}

const refusedFor = (extensions: string) => ({ code: "ExtensionSupportRequired", metadata: { extensions } });

describe("activation (A2A 1.0 §4.6)", () => {
  test("is off by default, ignores unknown extensions, and never takes another version", async () => {
    const made = serving({ uri: "https://example.com/ext/v1" }, { uri: two });
    expect(await activeIn(made, [])).toEqual([]);
    expect(
      await activeIn(made, ["https://example.com/ext/v2", "https://example.com/ext/v1/", "HTTPS://example.com/ext/v1"]),
    ).toEqual([]);
    expect(await activeIn(made, ["urn:unknown", two, "https://example.com/ext/v1"])).toEqual([
      "https://example.com/ext/v1",
      two,
    ]);
    expect(made.log).toEqual([]);
  });

  test("rejects every call that did not ask for a required extension", async () => {
    const made = serving({ uri: one, required: true }, { uri: two });
    await expect(activeIn(made, [two])).rejects.toMatchObject(refusedFor(one));
    await expect(made.get("task")).rejects.toMatchObject(refusedFor(one));
    await expect(made.stream("go")).rejects.toMatchObject(refusedFor(one));
    expect(await activeIn(made, [one])).toEqual([one]);
  });
});

describe("an extension that requires others", () => {
  test("is inactive without them, with all that require it; the server logs why", async () => {
    const made = serving({ uri: one }, { uri: two, requires: [one] }, { uri: three, requires: [two] });
    expect(await activeIn(made, [two, three])).toEqual([]);
    expect(made.log.map(({ level, extension, requires }) => [level, extension, requires])).toEqual([
      ["info", two, [one]],
      ["info", three, [two]],
    ]);
    expect(await activeIn(made, [three, two, one])).toEqual([one, two, three]);
    expect(await activeIn(made, [one])).toEqual([one]);
  });

  test("is rejected without them if it is required itself (ExtensionSupportRequired)", async () => {
    const made = serving({ uri: one }, { uri: two, requires: [one], required: true });
    await expect(activeIn(made, [two])).rejects.toMatchObject(refusedFor(one));
    expect(await activeIn(made, [one, two])).toEqual([one, two]);
  });
});

describe("onActivate", () => {
  test("sees the call; `false` leaves out the extension and those that require it", async () => {
    const calls: ActivatingCall[] = [];
    const made = serving(
      {
        uri: one,
        onActivate(call) {
          calls.push(call);
          return call.headers?.("x-agree") === "yes";
        },
      },
      { uri: two, requires: [one] },
    );
    expect(await activeIn(made, [one, two])).toEqual([]);
    expect(calls).toHaveLength(1);
    expect(calls[0]).toMatchObject({
      operation: "SendMessage",
      request: { message: { parts: [{ text: "go" }] } },
      principal: { subject: "anonymous" },
      version: "1.0",
      card: { name: "test" },
    });
    const agreeing = { extensions: [one, two], headers: (name: string) => (name === "x-agree" ? "yes" : undefined) };
    expect((await made.send("go", agreeing)).artifacts?.[0]?.parts[0]?.text).toBe(`${one} ${two}`);
    // The hook is not called, because this message does not request the extension.
    await activeIn(made, []);
    expect(calls).toHaveLength(2);
  });

  test("rejects the call with `false` if the extension is required", async () => {
    const made = serving({ uri: one, required: true, onActivate: () => false });
    await expect(activeIn(made, [one])).rejects.toMatchObject(refusedFor(one));
  });

  test.each<[string, () => unknown, object, object]>([
    [
      "throws an error of the protocol",
      () => {
        throw new A2AError("PermissionDenied", "Not for you");
      },
      { code: "PermissionDenied", message: "Not for you" },
      {},
    ],
    [
      "throws any other error",
      () => {
        throw new Error("at 10.0.0.7");
      },
      { code: "InternalError", message: "Internal error" },
      { cause: { message: expect.stringContaining(one) as string } },
    ],
    ["returns neither true nor false", () => "yes", { code: "InternalError" }, {}],
    ["returns a promise that rejects", () => Promise.reject(new Error("late")), { code: "InternalError" }, {}],
  ])(
    "that %s rejects the call; for a data extension, it only leaves out the extension",
    async (_, onActivate, error, more) => {
      const agree = onActivate as () => boolean;
      await expect(activeIn(serving({ uri: one, onActivate: agree }), [one])).rejects.toMatchObject({
        ...error,
        ...more,
      });
      const made = serving({ uri: one, kind: "data", onActivate: agree }, { uri: two });
      expect(await activeIn(made, [one, two])).toEqual([two]);
      expect(made.log.map(({ level, extension, hook }) => [level, extension, hook])).toEqual([
        ["warn", one, "onActivate"],
      ]);
    },
  );
});
