import { build, complete, shapeAt, type Path, type Shape } from "./fields.ts";
import { randomText, randomValue, type Random } from "./random.ts";

/** A way to damage one place of a valid request. */
export interface Damage {
  readonly name: string;
  /** The JSON text for this place, or `undefined` if the damage does not apply. */
  readonly text: (place: Place, random: Random) => string | undefined;
  /** Changes the surrounding text. */
  readonly around?: (before: string, text: string, after: string) => string;
}

interface Place {
  readonly shape: Shape;
  /** The name of the member, or the index in a list. `undefined` if the place is the whole request. */
  readonly key: string | number | undefined;
  /** The valid value as JSON text. */
  readonly good: string;
  /** All shapes that the surrounding list allows. Empty if this place is not in a list. */
  readonly alternatives: readonly Shape[];
}

function always(name: string, text: string): Damage {
  return { name, text: () => text };
}

function member(name: string, text: (place: Place) => string): Damage {
  return { name, text: (place) => (typeof place.key === "string" ? text(place) : undefined) };
}

function nested(levels: number): string {
  return "[".repeat(levels) + "]".repeat(levels);
}

const literals: Readonly<Record<string, string>> = {
  null: "null",
  "true instead": "true",
  "a number instead": "5",
  "text instead": '"text"',
  "an object instead": '{"a":1}',
  "an array instead": '["a"]',
  "an array in an array": "[[]]",
  "an empty text": '""',
  "an empty object": "{}",
  "an empty array": "[]",
  "an array of null": "[null]",
  "an array of a number": "[1]",
  zero: "0",
  "a negative number": "-1",
  "a fraction": "1.5",
  "minus zero": "-0",
  "one too many for 32 bits": "2147483648",
  "a number beyond exact ones": "9007199254740993",
  "an absurd number": "-1e308",
  "a number beyond all": "1e400",
  "an unknown name": '"TASK_STATE_NONSENSE"',
  "an unset name": '"TASK_STATE_UNSPECIFIED"',
  "a name of another version": '"input-required"',
  "a number for a name": "2",
  "text of one space": '" "',
  "control characters": '"\\u0007\\u001b[31m\\u007f"',
  "line breaks": '"a\\r\\nx-header: b"',
  NUL: '"a\\u0000b"',
  "half of a surrogate pair": '"\\ud800"',
  "the wrong half first": '"\\udc00\\ud800"',
  "characters of four bytes": '"😀𝒳"',
  "a path": '"../../etc/passwd"',
  "percent signs": '"%00%zz%2f"',
  "a verb": '"x:cancel"',
  "a quotation": '"\\" OR 1=1 --"',
  "a name of every object": '"__proto__"',
  "a prototype": '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
  "half a time": '"2026-01-31"',
  "a time that is none": '"2026-02-30T25:61:00Z"',
  "base64 that is none": '"a"',
  "a made-up token": '"eyJ0aW1lIjoxfQ.AAAA"',
  "no URL": '"http://["',
  "an identifier too long": `"${"i".repeat(1025)}"`,
  "a long text": `"${"x".repeat(20_000)}"`,
  "a long array": `[${Array(3000).fill("0").join()}]`,
  "a wide object": `{${Array.from({ length: 1000 }, (_, index) => `"k${index}":0`).join()}}`,
  "deep but bearable": nested(40),
  "too deep": nested(70),
  "far too deep": nested(20_000),
  "no value": "",
  "a word": "undefined",
  "no number": "NaN",
  "a number with a leading zero": "01",
  "text in single quotes": "'a'",
  "a raw control character": '"a\u0001b"',
  "an unknown escape": '"\\x41"',
};

export const damages: readonly Damage[] = [
  // The server must accept the valid value, which shows that other values are rejected because of their damage.
  { name: "nothing", text: ({ good }) => good },
  { name: "missing", text: ({ key }) => (typeof key === "string" ? "" : undefined), around: withoutMember },
  ...Object.entries(literals).map(([name, text]) => always(name, text)),
  member("given twice, another first", ({ key, good }) => `{"x":1},"${key}":${good}`),
  member("given twice, another last", ({ key, good }) => `${good},"${key}":[0]`),
  member("beside an unknown one", ({ good }) => `${good},"unknownField":{"a":[1]}`),
  member("beside one like it", ({ key, good }) => `${good},"${key}_":1,"${String(key).toUpperCase()}":2`),
  member("beside a prototype", ({ good }) => `${good},"__proto__":{"id":"x","text":"y"}`),
  {
    name: "several contents",
    text: ({ alternatives }) =>
      alternatives.length > 1 ? JSON.stringify(Object.assign({}, ...alternatives.map(complete))) : undefined,
  },
  { name: "no content", text: ({ alternatives }) => (alternatives.length > 1 ? '{"metadata":{}}' : undefined) },
  { name: "cut off before", text: () => "", around: (before) => before },
  { name: "cut off after", text: ({ good }) => good, around: (before, text) => before + text },
  {
    name: "cut off within",
    text: ({ good }) => good,
    around: (before, text) => before + text.slice(0, text.length >> 1),
  },
  { name: "a trailing comma", text: ({ good }) => `${good},` },
  {
    name: "something after the end",
    text: ({ good }) => good,
    around: (before, text, after) => `${before + text + after}}`,
  },
  { name: "any text", text: (_, random) => JSON.stringify(randomText(random)) },
  { name: "any number", text: (_, random) => String((random() - 0.5) * 10 ** Math.floor(random() * 30)) },
  { name: "any value", text: (_, random) => JSON.stringify(randomValue(random)) },
];

function withoutMember(before: string, _text: string, after: string): string {
  const start = before.slice(0, before.lastIndexOf('"', before.length - 3));
  if (start.endsWith(",")) return start.slice(0, -1) + after;
  return start + (after.startsWith(",") ? after.slice(1) : after);
}

/** A valid request of `shape`, with damage at one place, as JSON text. */
export function damaged(shape: Shape, path: Path, damage: Damage, random: Random): string | undefined {
  const mark = "\u0001";
  let good: unknown;
  const whole = build(shape, path, (value) => {
    good = value;
    return mark;
  });
  const parent = shapeAt(shape, path.slice(0, -1));
  const key = path.at(-1);
  const alternatives = parent.kind === "list" ? parent.items : [];
  const text = damage.text({ shape: shapeAt(shape, path), key, good: JSON.stringify(good), alternatives }, random);
  if (text === undefined) return undefined;
  const [before, after] = JSON.stringify(whole).split(JSON.stringify(mark)) as [string, string];
  return damage.around === undefined ? before + text + after : damage.around(before, text, after);
}
