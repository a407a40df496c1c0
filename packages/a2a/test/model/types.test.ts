import { describe, expect, expectTypeOf, test } from "vitest";
import type { JsonObject, JsonValue, Role, TaskState } from "../../src/model/index.ts";
import { messageNames, type MessageName, type Models, type Proto } from "./proto.ts";

/** The TypeScript type for each scalar name of the table. */
interface Scalars {
  string: string;
  filled: string;
  id: string;
  bytes: string;
  Timestamp: string;
  bool: boolean;
  count: number;
  page: number;
  Role: Role;
  TaskState: TaskState;
  Struct: JsonObject;
  Value: JsonValue;
}
type Base<Name> = Name extends keyof Scalars ? Scalars[Name] : Name extends keyof Models ? Models[Name] : never;
type Bare<Type> = Type extends `${infer Rest}!` | `${infer Rest}?` ? Rest : Type;
type TypeOf<Type> = Type extends `${infer Item}[]`
  ? readonly Base<Item>[]
  : Type extends `{${infer Item}}`
    ? { readonly [key: string]: Base<Item> }
    : Base<Type>;
type Flat<T> = { [Name in keyof T]: T[Name] };

/** The interface that the proto describes. REQUIRED members are required, and all others are optional. */
type Described<Fields> = Flat<
  {
    readonly [Name in keyof Fields as Fields[Name] extends `${string}!` ? Name : never]: TypeOf<Bare<Fields[Name]>>;
  } & {
    readonly [Name in keyof Fields as Fields[Name] extends `${string}!` ? never : Name]?: TypeOf<Bare<Fields[Name]>>;
  }
>;

type Union = "Part" | "SecurityScheme" | "OAuthFlows" | "SendMessageResponse" | "StreamResponse";
/** Messages with a member whose value is a known name or any other string. Editors suggest the known names. */
type Loose = "AgentInterface";
type Plain = Exclude<MessageName, Union | Loose>;

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** The names of messages whose type differs from the proto. */
type Different = {
  [Name in Plain]: Same<Flat<Models[Name]>, Described<Proto[Name]>> extends true ? never : Name;
}[Plain];

/** The required member of each branch of a union. */
type Branches<T, Member extends PropertyKey> = T extends unknown
  ? { [Name in keyof T]-?: undefined extends T[Name] ? never : Name }[keyof T] & Member
  : never;

describe("types of the model", () => {
  test("have the fields of the proto, required and optional as it declares (A2A 1.0 §5.7)", () => {
    expectTypeOf<Different>().toEqualTypeOf<never>();
    expectTypeOf<Flat<Models["AgentInterface"]>>().toExtend<Described<Proto["AgentInterface"]>>();
    expectTypeOf<keyof Models["AgentInterface"]>().toEqualTypeOf<keyof Proto["AgentInterface"]>();
    expect(messageNames).toHaveLength(44);
  });

  test("have exactly one branch for each member of a oneof", () => {
    expectTypeOf<Branches<Models["Part"], keyof Proto["Part"]>>().toEqualTypeOf<"text" | "raw" | "url" | "data">();
    expectTypeOf<keyof Models["Part"]>().toEqualTypeOf<keyof Proto["Part"]>();
    expectTypeOf<Branches<Models["StreamResponse"], keyof Proto["StreamResponse"]>>().toEqualTypeOf<
      keyof Proto["StreamResponse"]
    >();
    expectTypeOf<Branches<Models["SendMessageResponse"], keyof Proto["SendMessageResponse"]>>().toEqualTypeOf<
      keyof Proto["SendMessageResponse"]
    >();
    expectTypeOf<Branches<Models["SecurityScheme"], keyof Proto["SecurityScheme"]>>().toEqualTypeOf<
      keyof Proto["SecurityScheme"]
    >();
    expectTypeOf<Branches<Models["OAuthFlows"], keyof Proto["OAuthFlows"]>>().toEqualTypeOf<
      keyof Proto["OAuthFlows"]
    >();
  });

  test("are distinguished by the member that is present", () => {
    const part = { text: "hi" } as Models["Part"];
    if (part.text !== undefined) expectTypeOf(part.text).toEqualTypeOf<string>();
    // @ts-expect-error a part cannot have two contents
    const two: Models["Part"] = { text: "hi", url: "https://example.com" };
    // @ts-expect-error a part must have a content
    const none: Models["Part"] = { filename: "a.txt" };
    expect([two, none]).toHaveLength(2);
  });
});
