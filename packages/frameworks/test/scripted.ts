/** A part of a model's stream. */
export interface ModelPart {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** The input of a model call. */
export interface ModelCall {
  readonly prompt: readonly { readonly role: string; readonly content: unknown }[];
  readonly abortSignal?: AbortSignal;
}

type Answer = readonly ModelPart[] | ((call: ModelCall) => AsyncIterable<ModelPart>);

const usage = { inputTokens: { total: 7 }, outputTokens: { total: 11 } };

export const finish = (unified = "stop"): ModelPart => ({
  type: "finish",
  finishReason: { unified, raw: unified },
  usage,
});

/** The parts of a text answer, streamed in the given pieces. */
export const says = (...pieces: readonly string[]): readonly ModelPart[] => [
  { type: "text-start", id: "1" },
  ...pieces.map((delta) => ({ type: "text-delta", id: "1", delta })),
  { type: "text-end", id: "1" },
  finish(),
];

/** The parts of an answer with tool calls: names and arguments. */
export const calls = (
  ...of: readonly (readonly [id: string, name: string, input: unknown])[]
): readonly ModelPart[] => [
  ...of.map(([toolCallId, toolName, input]) => ({
    type: "tool-call",
    toolCallId,
    toolName,
    input: typeof input === "string" ? input : JSON.stringify(input),
  })),
  finish("tool-calls"),
];

/** A model that gives its answers in order, and records its calls. */
export class Scripted {
  readonly specificationVersion = "v3";
  readonly provider = "scripted";
  readonly modelId = "script";
  readonly supportedUrls = {};
  readonly calls: ModelCall[] = [];
  readonly #answers: readonly Answer[];

  constructor(...answers: readonly Answer[]) {
    this.#answers = answers;
  }

  async doStream(call: ModelCall): Promise<{ stream: ReadableStream<ModelPart> }> {
    const answer = this.#answers[this.calls.length] ?? this.#answers.at(-1) ?? [];
    this.calls.push(call);
    const parts = typeof answer === "function" ? answer(call)[Symbol.asyncIterator]() : answer[Symbol.iterator]();
    return {
      stream: new ReadableStream({
        async pull(controller) {
          const next = await parts.next();
          if (next.done === true) controller.close();
          else controller.enqueue(next.value);
        },
      }),
    };
  }

  async doGenerate(): Promise<never> {
    throw new Error("It only streams");
  }
}
