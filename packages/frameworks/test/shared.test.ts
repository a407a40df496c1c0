import { describe, expect, test } from "vitest";
import type { Turn } from "@parley/server";
import { approvalOf, resume, suspend } from "../src/ai-sdk/approvals.ts";
import { digestOf, fromJson, isLarger, toJson, toPlainJson } from "../src/shared/json.ts";
import { checkPeer, installedVersion } from "../src/shared/peer.ts";

const itself: Record<string, unknown> = {};
itself["itself"] = itself;

describe("JSON of framework values", () => {
  test("keeps bytes, URLs and dates", () => {
    const value = { a: [new Uint8Array([1, 2])], b: new URL("https://example.com/"), c: new Date(5), d: 1n };
    expect(fromJson(toJson(value))).toEqual({ ...value, d: "1" });
    expect(toPlainJson(value)).toEqual({
      a: ["AQI="],
      b: "https://example.com/",
      c: "1970-01-01T00:00:00.005Z",
      d: "1",
    });
  });

  test.each([
    { $url: "no URL" },
    { $bytes: "%" },
    { $date: "2026-01-01" },
    { $plain: { $date: "x" } },
    { deep: [{ $url: "x", other: 1 }] },
    { $plain: "x" },
  ])("restores objects that look like its own marks: %j", async (value) => {
    expect(fromJson(toJson(value))).toEqual(value);
    expect(toPlainJson(value)).toEqual(value);
  });

  test("has a digest for deeply nested marks, and for lone surrogates", async () => {
    let value: object = {};
    for (let depth = 0; depth < 48; depth += 1) value = { $url: value };
    await expect(digestOf(toJson(value))).resolves.toHaveLength(64);
    await expect(digestOf(toJson(["\ud800\ud800", "\\ud800"]))).resolves.toHaveLength(64);
  });

  test("rejects objects whose shared references would make their JSON exhaust the memory", () => {
    let value: object = {};
    for (let depth = 0; depth < 60; depth += 1) value = { one: value, other: value };
    expect(() => toJson(value)).toThrow("the value is too large");
    expect(() => toPlainJson(new Float64Array(4 << 20))).toThrow("the value is too large");
    expect([isLarger(value, 1000), isLarger(itself, 100_000), isLarger("x".repeat(999), 1500)]).toEqual([
      true,
      false,
      false,
    ]);
  });

  test("converts the result of toJSON(), such as a list", () => {
    expect(toJson({ list: { toJSON: () => [1, new Date(0)] } })).toEqual({
      list: [1, { $date: "1970-01-01T00:00:00.000Z" }],
    });
  });
});

test("rejects a version of the AI SDK outside the range", () => {
  const range = { adapter: "ai-sdk", name: "ai", min: 6, below: 8 };
  for (const version of ["5.9.9", "8.0.0-beta.1", "nightly"])
    expect(() => checkPeer(range, version)).toThrow(`@parley/frameworks/ai-sdk needs ai >=6 <8, found ${version}`);
  for (const version of ["6.0.0", "7.9.9", undefined]) expect(() => checkPeer(range, version)).not.toThrow();
});

test("rejects a version below 1.0 by its minor version, and finds the version of a package that does not export it", () => {
  const range = { adapter: "openai-agents", name: "@openai/agents", min: "0.17", below: "0.21" };
  for (const version of ["0.2.1", "0.16.1", "0.21.0", "1.0.0"])
    expect(() => checkPeer(range, version)).toThrow(
      `@parley/frameworks/openai-agents needs @openai/agents >=0.17 <0.21, found ${version}`,
    );
  for (const version of ["0.17.0", "0.20.9"]) expect(() => checkPeer(range, version)).not.toThrow();
  expect(installedVersion("@openai/agents", import.meta.url)).toBe("0.20.0");
  expect(installedVersion("ai", import.meta.url)).toMatch(/^7\./);
  expect(installedVersion("@parley/no-such-package", import.meta.url)).toBeUndefined();
});

describe("an approval", () => {
  const turnOf = async (text: string) => {
    let state: unknown;
    const fake = {
      number: 2,
      text,
      message: { messageId: "m", role: "ROLE_USER", parts: [{ text }] },
      task: undefined,
      state: () => state,
      setState: (value: unknown) => void (state = value),
      inputRequired: (parts: unknown) => parts,
    };
    const toolCall = { toolCallId: "c", toolName: "pay", input: { $date: "x" } };
    const approval = await approvalOf({ approvalId: "a", toolCall });
    suspend(fake as unknown as Turn, [], [approval]);
    return { approval, answer: (more: object) => resume({ ...fake, ...more } as unknown as Turn) };
  };

  test("is not given by the message of a turn that asked and crashed", async () => {
    const { answer } = await turnOf("yes");
    expect(answer({ attempt: 2 })).toHaveProperty("ask");
    expect(answer({ number: 3 })).toHaveProperty("messages");
  });

  test("is not given by a text next to data that is not an answer", async () => {
    const { answer } = await turnOf("yes");
    const parts = [{ text: "yes" }, { data: { approved: false } }];
    expect(answer({ number: 3, message: { messageId: "n", parts } })).toHaveProperty("ask");
  });

  test("has the digest of the shown arguments", async () => {
    const { approval } = await turnOf("yes");
    expect(approval.input).toEqual({ $date: "x" });
    expect(approval.digest).toBe(await digestOf({ toolName: "pay", input: approval.input }));
  });
});
