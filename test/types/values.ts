// Values that are accepted as JSON, and values that are rejected. Each rejected line expects a compiler error, and the test fails if the
// compiler does not report that error.
import { artifact, data, message, type JsonLike, type JsonObject, type JsonValue } from "@parley/a2a/model";
import { defineAgent, file, text, type Turn } from "@parley/server";

interface City {
  name: string;
  degrees?: number;
  near?: string | undefined;
  readonly tags: readonly string[];
  place: [number, number];
  twin?: City | null;
}
interface Tree {
  value: number;
  children: Tree[];
}
type Shape = { kind: "circle"; radius: number } | { kind: "square"; side: number; label?: string };
type Nested = JsonValue | Nested[];
declare enum Level {
  Low,
  High,
}
declare enum Color {
  Red = "red",
}
interface Page<Item> {
  items: readonly Item[];
  first: Item;
  next?: string;
}
interface Mixed {
  city: City;
  more: JsonValue;
  meta?: JsonObject;
  all: Record<string, City>;
  some: Partial<Record<"a" | "b", City>>;
}
class Plain {
  readonly width = 1;
  height?: number;
}
declare const brand: unique symbol;
type Id = string & { readonly [brand]: "id" };
interface Branded {
  readonly [brand]: () => void;
  readonly id: Id;
}

declare const city: City;

export function accepted(
  tree: Tree,
  shape: Shape,
  nested: Nested,
  mixed: Mixed,
  branded: Branded,
  value: JsonValue,
  object: JsonObject,
): readonly unknown[] {
  return [
    data(city),
    data(tree),
    data(shape),
    data(nested),
    data(mixed),
    data(branded),
    data(value),
    data(object),
    data(new Plain()),
    data([city]),
    data([city, tree] as const),
    data({ city, list: [tree, null, 1] }),
    data("x"),
    data(1),
    data(true),
    data(null),
    data({}),
    data([]),
    data({ level: Level.High, color: Color.Red, left: undefined }),
    data(Math.random() > 0.5 ? city : null),
    data({ cities: [city] } satisfies Pick<{ cities: readonly City[] }, "cities">),
    data({} as Page<City>),
    data(Object.freeze({ ...city })),
    data({} as Readonly<City>),
    data(JSON.parse("1")),
    data(city, { metadata: city }),
    text("x", { metadata: city }),
    file(new Uint8Array(1), { metadata: city }),
    file(new URL("https://example.com/"), { metadata: { city } }),
    message("x", { metadata: city }),
    artifact("x", { metadata: city }),
  ];
}

export function generic<Narrow extends JsonValue, Wide extends JsonLike<Wide>>(
  narrow: Narrow,
  wide: Wide,
  page: Page<Wide>,
): readonly unknown[] {
  return [data(narrow), data({ narrow }), data([narrow]), data(wide), data({ wide }), data([wide]), data(page)];
}

// Data that is read back has the type of arbitrary JSON.
export const read: JsonValue = data(city).data;
// @ts-expect-error Data that is read back has no specific type.
export const typed: City = data(city).data;

/** A typical SDK result: without an index signature, with members of any type, and with nested types of the SDK. */
interface Usage {
  tokens: number;
  details?: Record<string, unknown> | null;
}
interface Completion {
  id: string;
  choices: readonly { index: number; message: { role: "assistant"; content: string | null; tool: ToolUse } }[];
  usage?: Usage;
  metadata: { [key: string]: unknown };
}
interface ToolUse {
  name: string;
  input: unknown;
}
interface Row {
  [column: string]: unknown;
}

export function ofSdks(
  completion: Completion,
  row: Row,
  rows: readonly Row[],
  anything: Record<string, unknown>,
  tool: ToolUse & { readonly list: unknown[] },
  turn: Turn,
): readonly unknown[] {
  const stored: Promise<Completion> = turn.step("ask", () => Promise.resolve(completion));
  const read: Promise<readonly Row[]> = turn.step("read", () => rows);
  const nothing: Promise<void> = turn.step("tell", () => {});
  turn.setState(completion);
  return [
    data(completion),
    data(row),
    data(rows),
    data(anything),
    data(tool),
    data({ tool, more: [anything] }),
    turn.saveCheckpoint(completion),
    text("x", { metadata: anything }),
    stored,
    read,
    nothing,
  ];
}

interface WithDate {
  name: string;
  at: Date;
}
interface WithMethod {
  name: string;
  run(): void;
}
class Instance {
  width = 1;
  area(): number {
    return this.width;
  }
}

export function refused(
  withDate: WithDate,
  withMethod: WithMethod,
  optional: { run?: () => void },
  maybe: City | undefined,
  strange: unknown,
  dates: Record<string, Date>,
): void {
  // @ts-expect-error A member is a Date.
  data(withDate);
  // @ts-expect-error A member is a function.
  data(withMethod);
  // @ts-expect-error A member may be a function.
  data(optional);
  // @ts-expect-error The value may be undefined.
  data(maybe);
  // @ts-expect-error The value may be anything.
  data(strange);
  // @ts-expect-error The members are dates.
  data(dates);
  // @ts-expect-error JSON has no undefined.
  data(undefined);
  // @ts-expect-error JSON has no bigint.
  data(1n);
  // @ts-expect-error JSON has no symbols.
  data(Symbol("x"));
  // @ts-expect-error JSON has no functions.
  data(() => 1);
  // @ts-expect-error JSON has no classes.
  data(Instance);
  // @ts-expect-error The value has methods.
  data(new Instance());
  // @ts-expect-error The value has methods.
  data(new Date());
  // @ts-expect-error The value has methods.
  data(new Map([["a", 1]]));
  // @ts-expect-error The value has methods.
  data(new Set([1]));
  // @ts-expect-error Bytes belong in `file()`.
  data(new Uint8Array(1));
  // @ts-expect-error Bytes belong in `file()`.
  data(new ArrayBuffer(1));
  // @ts-expect-error The value has methods.
  data(new URL("https://example.com/"));
  // @ts-expect-error The value has methods.
  data(/x/);
  // @ts-expect-error The value has methods.
  data(Promise.resolve(1));
  // @ts-expect-error In a list, undefined would become null.
  data([undefined]);
  // @ts-expect-error Deep in an object.
  data({ a: { b: [{ c: 1n }] } });
  // @ts-expect-error Deep in an object.
  data({ a: { b: [{ c: Symbol("x") }] } });
  // @ts-expect-error Metadata is an object.
  text("x", { metadata: ["x"] });
  // @ts-expect-error Metadata is JSON.
  text("x", { metadata: { at: new Date() } });
  // @ts-expect-error Metadata is an object.
  message("x", { metadata: "x" });
}

interface Cart {
  items: readonly string[];
  note?: string;
}
interface Customer {
  language: "de" | "en";
}

export const shop = defineAgent<{ state: Cart; context: Customer; checkpoint: number }>({
  name: "Shop",
  description: "Sells.",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    const page: number | undefined = turn.checkpoint;
    const cart: Cart | undefined = turn.state();
    const customer: Customer | undefined = turn.context.state();
    turn.setState({ items: [...(cart?.items ?? []), turn.text] });
    turn.setState(undefined);
    turn.context.setState(customer ?? { language: "de" });
    yield turn.saveCheckpoint((page ?? 0) + 1);
    // @ts-expect-error The checkpoint is a number.
    yield turn.saveCheckpoint("1");
    // @ts-expect-error The checkpoint is a number.
    const wrong: string | undefined = turn.checkpoint;
    // @ts-expect-error Items must be strings.
    turn.setState({ items: [1] });
    // @ts-expect-error The state has no such member.
    turn.setState({ items: [], total: wrong });
    // @ts-expect-error The state does not allow this language.
    turn.context.setState({ language: "fr" });
    yield* helped(turn);
    ask(turn);
  },
});

export const untyped = defineAgent({
  name: "Shop",
  description: "Sells.",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    const page = turn.checkpoint as number | undefined;
    const before: JsonValue | undefined = turn.state();
    const named = turn.context.state<Customer>();
    const customer: JsonValue | undefined = turn.context.state();
    turn.setState(city);
    turn.setState(before);
    turn.setState(undefined);
    turn.context.setState(city);
    turn.context.setState(customer ?? named);
    yield turn.saveCheckpoint((page ?? 0) + 1);
    yield turn.saveCheckpoint(city);
    yield turn.working("…", { metadata: city });
    yield turn.artifact({ parts: [data(city)], metadata: city });
    yield* turn.stream((async function* () {})(), { metadata: city });
    // @ts-expect-error A Date is not JSON.
    yield turn.saveCheckpoint(new Date());
    // @ts-expect-error A Date is not JSON.
    turn.setState({ at: new Date() });
    // @ts-expect-error A Date is not JSON.
    yield turn.working("…", { metadata: { at: new Date() } });
    ask(turn);
  },
});

async function* helped(turn: Turn<{ state: Cart; context: Customer; checkpoint: number }>) {
  yield turn.saveCheckpoint(turn.checkpoint ?? 0);
}

/** Accepts the turn of any agent. */
function ask(turn: Turn): void {
  turn.context.setState({ asked: turn.text });
}

// @ts-expect-error State is stored as JSON.
export type NoJson = Parameters<typeof defineAgent<{ state: Date }>>;
// @ts-expect-error The agent has no option of this name.
export type Misspelt = Parameters<typeof defineAgent<{ sate: Cart }>>;
