import { expect, test, vi } from "vitest";
import { Payload, TextPayload } from "../../src/protocol/index.ts";

interface Note {
  text: string;
  readonly tags: string[];
}

const note = (): Note => ({ text: "secret", tags: ["a"] });
const json = JSON.stringify(note());

const payloads: readonly [name: string, make: () => Payload<Note>][] = [
  ["of a value", () => new Payload(note())],
  ["of a text", () => new TextPayload<Note>(json)],
  ["of a text in pieces", () => new TextPayload<Note>([json.slice(0, 9), json.slice(9)])],
];

test.each(payloads)("a payload %s returns each form, and the same each time", (_, make) => {
  const payload = make();
  expect(payload.json).toBe(json);
  expect(payload.read()).toEqual(note());
  expect(payload.value).toEqual(note());
  expect(payload.value).toBe(payload.value);
  expect(payload.json).toBe(json);
});

test.each(payloads)("`map` makes another payload from one %s and does not change it", (_, make) => {
  const payload = make();
  const redacted = payload.map(({ tags }) => ({ text: "[gone]", tags }));
  expect(JSON.parse(redacted.json)).toEqual({ text: "[gone]", tags: ["a"] });
  expect(redacted.read()).toEqual(redacted.value);
  expect(payload.json).toBe(json);
});

/** Changes that an interceptor may try. The payload's text and value must stay equal. */
const mutations: readonly [name: string, mutate: (payload: Payload<Note>) => void][] = [
  ["a member of the value", (payload) => (payload.value.text = "changed")],
  ["a nested member of the value", (payload) => payload.value.tags.push("changed")],
  ["the value that an encoder reads", (payload) => (payload.read().text = "changed")],
  ["a piece", (payload) => ((payload.pieces as string[])[0] = '{"text":"changed",')],
  ["a member of the payload", (payload) => Object.assign(payload, { value: { text: "changed" } })],
];

test.each(payloads.flatMap(([name, make]) => mutations.map(([what, mutate]) => [what, name, make, mutate] as const)))(
  "changing %s of a payload %s does not make its forms differ",
  (_what, _name, make, mutate) => {
    for (const before of [() => undefined, (each: Payload<Note>) => each.json, (each: Payload<Note>) => each.value]) {
      const payload = make();
      before(payload);
      try {
        mutate(payload);
      } catch {
        // A change to a frozen value throws, which is allowed.
      }
      expect(JSON.parse(payload.json)).toEqual(payload.value);
      expect(payload.value).toEqual(payload.read());
    }
  },
);

test("a parsed value is deeply frozen, and separate from the value for encoders", () => {
  const payload = new TextPayload<Note>(json);
  const { value } = payload;
  expect(() => (value.text = "changed")).toThrow(TypeError);
  expect(() => value.tags.push("changed")).toThrow(TypeError);
  const other = new TextPayload<Note>(json);
  expect(other.read()).not.toBe(other.read());
});

test("text is parsed once, when the value is asked for, and not for writing", () => {
  const parse = vi.spyOn(JSON, "parse");
  const write = vi.spyOn(JSON, "stringify");
  const whole = new TextPayload<Note>(json);
  const pieces = new TextPayload<Note>([json.slice(0, 9), json.slice(9)]);
  expect([whole.json, pieces.json, pieces.pieces?.join("")]).toEqual([json, json, json]);
  expect(whole.pieces).toBeUndefined();
  const before = [parse.mock.calls.length, write.mock.calls.length];
  for (const payload of [whole, pieces]) expect([payload.value, payload.value, payload.read()]).toHaveLength(3);
  const after = [parse.mock.calls.length, write.mock.calls.length];
  vi.restoreAllMocks();
  expect([before, after]).toEqual([
    [0, 0],
    [2, 0],
  ]);
});

test("does not show its content in a copy or a log line", () => {
  for (const [, make] of payloads) {
    expect(Object.entries(make())).toEqual([]);
    expect(JSON.stringify({ reply: make() })).toBe('{"reply":{}}');
  }
});
