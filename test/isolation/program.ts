import fc from "fast-check";

/* A random program: calls of two principals, each with ids of both. */

/** The two principals. */
export const names = ["ada", "bob"] as const;
export type Name = (typeof names)[number];

/** How a call reaches the agent. */
export const bindings = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;
export const versions = ["1.0", "0.3"] as const;

/** A call before this one, by its place in the program, whose ids are used. It may be one of the other principal. */
export type Ref = number;

/** What a call does. `task`, `context`, `token`: the ids that an earlier call got. */
export type Act =
  | {
      readonly kind: "send";
      /** The agent's commands. */
      readonly what: "reply" | "ask" | "finish" | "wait";
      /** Whether the text has the mark of its sender. Others send the same text under the same id. */
      readonly marked: boolean;
      readonly messageId: number;
      readonly stream: boolean;
      readonly webhook: boolean;
      readonly task?: Ref;
      /** A context of an earlier call. */
      readonly context?: Ref;
      /** A context that both principals name alike. */
      readonly named?: number;
      readonly references?: Ref;
    }
  | { readonly kind: "get" | "cancel" | "subscribe"; readonly task: Ref; readonly after?: number }
  | {
      readonly kind: "list";
      readonly context?: Ref;
      readonly named?: number;
      readonly token?: Ref;
      readonly pageSize: number;
    }
  | { readonly kind: "hook" | "getHook" | "deleteHook"; readonly task: Ref; readonly hook: number }
  | { readonly kind: "listHooks"; readonly task: Ref; readonly token?: Ref }
  | { readonly kind: "card" };

/** One call. */
export interface Call {
  readonly by: Name;
  readonly binding: (typeof bindings)[number];
  readonly version: (typeof versions)[number];
  readonly act: Act;
}

const ref = fc.nat({ max: 59 });
const few = fc.nat({ max: 2 });

const send: fc.Arbitrary<Act> = fc.record(
  {
    kind: fc.constant("send" as const),
    what: fc.constantFrom("reply" as const, "ask" as const, "ask" as const, "finish" as const, "wait" as const),
    marked: fc.boolean(),
    messageId: few,
    stream: fc.boolean(),
    webhook: fc.boolean(),
    task: ref,
    context: ref,
    named: few,
    references: ref,
  },
  { requiredKeys: ["kind", "what", "marked", "messageId", "stream", "webhook"] },
);
const aboutTask: fc.Arbitrary<Act> = fc.record(
  {
    kind: fc.constantFrom("get" as const, "cancel" as const, "subscribe" as const),
    task: ref,
    after: fc.nat({ max: 5 }),
  },
  { requiredKeys: ["kind", "task"] },
);
const list: fc.Arbitrary<Act> = fc.record(
  {
    kind: fc.constant("list" as const),
    context: ref,
    named: few,
    token: ref,
    pageSize: fc.integer({ min: 1, max: 3 }),
  },
  { requiredKeys: ["kind", "pageSize"] },
);
const hooks: fc.Arbitrary<Act> = fc.record({
  kind: fc.constantFrom("hook" as const, "hook" as const, "getHook" as const, "deleteHook" as const),
  task: ref,
  hook: few,
});
const listHooks: fc.Arbitrary<Act> = fc.record(
  { kind: fc.constant("listHooks" as const), task: ref, token: ref },
  { requiredKeys: ["kind", "task"] },
);

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 8, arbitrary: send },
  { weight: 6, arbitrary: aboutTask },
  { weight: 4, arbitrary: list },
  { weight: 4, arbitrary: hooks },
  { weight: 2, arbitrary: listHooks },
  { weight: 1, arbitrary: fc.constant({ kind: "card" } as const) },
);

/** Calls, in their order. */
export const program: fc.Arbitrary<readonly Call[]> = fc.array(
  fc.record({
    by: fc.constantFrom(...names),
    binding: fc.constantFrom(...bindings),
    version: fc.constantFrom(...versions),
    act,
  }),
  { minLength: 30, maxLength: 45 },
);
