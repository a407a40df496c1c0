import type { Model, ModelRequest, StreamEvent } from "@openai/agents";

/* Scripted models for the OpenAI Agents SDK. */

type Output = Extract<StreamEvent, { readonly type: "response_done" }>["response"]["output"];

export type Answer = readonly StreamEvent[] | ((request: ModelRequest) => AsyncIterable<StreamEvent>);

/** The end of an answer. */
export const done = (...output: Output): StreamEvent => ({
  type: "response_done",
  response: { id: "r", usage: { requests: 1, inputTokens: 7, outputTokens: 11, totalTokens: 18 }, output },
});

const message = (text: string): Output[number] => ({
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text }],
});

const deltas = (pieces: readonly string[]): readonly StreamEvent[] =>
  pieces.map((delta) => ({ type: "output_text_delta", delta }));

/** The events of a text answer, streamed in the given pieces. */
export const says = (...pieces: readonly string[]): readonly StreamEvent[] => [
  ...deltas(pieces),
  done(message(pieces.join(""))),
];

type Call = readonly [id: string, name: string, input: unknown];

const callOf = ([callId, name, input]: Call): Output[number] => ({
  type: "function_call",
  callId,
  name,
  status: "completed",
  arguments: typeof input === "string" ? input : JSON.stringify(input),
});

/** The events of an answer with tool calls: names and arguments. */
export const calls = (...of: readonly Call[]): readonly StreamEvent[] => [done(...of.map(callOf))];

/** A text, and then a call. */
export const saysAndCalls = (pieces: readonly string[], call: Call): readonly StreamEvent[] => [
  ...deltas(pieces),
  done(message(pieces.join("")), callOf(call)),
];

/** A model that gives its answers in order, and records its requests. */
export class Scripted implements Model {
  readonly requests: ModelRequest[] = [];
  readonly #answers: readonly Answer[];

  constructor(...answers: readonly Answer[]) {
    this.#answers = answers;
  }

  async *getStreamedResponse(request: ModelRequest): AsyncGenerator<StreamEvent> {
    const answer = this.#next(request);
    yield* typeof answer === "function" ? answer(request) : answer;
  }

  async getResponse(request: ModelRequest): Promise<never> {
    const answer = this.#next(request);
    for await (const event of typeof answer === "function" ? answer(request) : answer)
      if (event.type === "response_done") return { ...event.response, responseId: event.response.id } as never;
    throw new Error("The answer has no end");
  }

  #next(request: ModelRequest): Answer {
    const answer = this.#answers[this.requests.length] ?? this.#answers.at(-1) ?? [];
    this.requests.push(request);
    return answer;
  }
}
