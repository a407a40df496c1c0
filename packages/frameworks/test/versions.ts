import * as ai7 from "ai";
import * as ai6 from "ai-6";

/** The exports of a version that the tests use. Type tests for each version are in types.test.ts. */
export interface Version {
  readonly name: string;
  readonly ToolLoopAgent: new (settings: object) => Stock;
  readonly tool: (tool: object) => object;
  readonly jsonSchema: (schema: object) => unknown;
  readonly stepCountIs: (count: number) => unknown;
  readonly Output: { object(options: object): unknown };
}

/** A stock agent. */
export interface Stock {
  readonly version: "agent-v1";
  readonly tools: object;
  readonly stream: (options: { readonly messages: never[]; readonly abortSignal: AbortSignal }) => Promise<{
    readonly fullStream: AsyncIterable<{ readonly type: string }>;
    readonly output: PromiseLike<unknown>;
    readonly response: PromiseLike<object>;
  }>;
}

/** Both versions load on every supported Node, though AI SDK 7 requires Node 22. */
export const versions: readonly Version[] = [
  { ...ai6, name: "ai 6" } as unknown as Version,
  { ...ai7, name: "ai 7" } as unknown as Version,
];
