import type { Model, ModelProvider, ModelRequest, StreamEvent } from "@openai/agents";
import { utf8Length } from "@parley/a2a/internal/base/index";
import type { Turn } from "@parley/server";
import { checkAnswerSize, Pieces, piecesOf, type Answers } from "../shared/answers.ts";
import { wellFormed } from "../shared/json.ts";
import type { Gate } from "../shared/results.ts";

/* A model whose answers are steps. Answers are stored as output items, and replayed as text and items (docs/decisions/frameworks.md). */

type Response = Extract<StreamEvent, { readonly type: "response_done" }>["response"];

/** A stored answer. */
interface Answer {
  readonly response: Response;
  /** Lengths of the streamed pieces of its text. */
  readonly pieces: readonly number[];
  /** The streamed text, if it differs from the response. */
  readonly text?: string;
}

/** Makes the durable models of one turn. */
export class Models {
  readonly #turn: Turn;
  readonly #answers: Answers;
  readonly #gate: Gate;

  constructor(turn: Turn, answers: Answers, gate: Gate) {
    this.#turn = turn;
    this.#answers = answers;
    this.#gate = gate;
  }

  /** A provider whose models are durable. */
  provider(provider: ModelProvider): ModelProvider {
    return { getModel: async (name) => this.of(await provider.getModel(name)) };
  }

  /** A model whose streamed answers are steps. The loop itself always streams. */
  of(model: Model): Model {
    const { supportsPromptModelSelection } = model;
    return {
      ...(supportsPromptModelSelection !== undefined && { supportsPromptModelSelection }),
      getResponse: (request) => model.getResponse(request),
      getStreamedResponse: (request) => this.#stream(model, request),
      getRetryAdvice: (failed) => model.getRetryAdvice?.(failed),
    };
  }

  async *#stream(model: Model, request: ModelRequest): AsyncGenerator<StreamEvent, void, void> {
    // This call is made by an agent used as a tool, and the result of that tool is the step.
    if (this.#gate.running > 0) {
      for await (const event of model.getStreamedResponse(request)) yield event;
      return;
    }
    await this.#gate.open();
    const { readable, writable } = new TransformStream<StreamEvent, StreamEvent>();
    const writer = writable.getWriter();
    writer.closed.catch(() => {});
    const write = (delta: string): Promise<void> => writer.write({ type: "output_text_delta", delta });
    let isLive = false;
    const sent = this.#answers
      .of<Answer>(request.input, () => {
        isLive = true;
        return record(model.getStreamedResponse(request), write, this.#turn);
      })
      .then(async ({ response, pieces, text = textOf(response) }) => {
        if (!isLive) for (const piece of piecesOf(text, pieces)) await write(piece);
        await writer.write({ type: "response_done", response });
        await writer.close();
      });
    sent.catch((error: unknown) => writer.abort(error)).catch(() => {});
    yield* readable;
    await sent;
  }
}

/**
 * Forwards the text of an answer while it streams, and returns the complete answer. Omits provider events. If the response has more text than was
 * streamed, the rest follows at the end.
 */
async function record(
  events: AsyncIterable<StreamEvent>,
  write: (delta: string) => Promise<void>,
  { clock, signal }: Turn,
): Promise<Answer> {
  const streamed = new Pieces(clock);
  let response: Response | undefined;
  let bytes = 0;
  const pass = async (piece: string): Promise<void> => {
    if (piece !== "") await write(piece);
  };
  for await (const event of events) {
    signal.throwIfAborted();
    if (response !== undefined) continue;
    if (event.type === "response_done") response = event.response;
    if (event.type !== "output_text_delta") continue;
    checkAnswerSize((bytes += utf8Length(event.delta)));
    await pass(streamed.add(event.delta));
  }
  if (response === undefined) throw new Error("The model's answer ended without a response");
  await pass(streamed.end());
  const text = textOf(response);
  if (text.startsWith(streamed.text)) await pass(streamed.add(text.slice(streamed.text.length)) + streamed.end());
  // The other members repeat the request.
  const { id, requestId, usage, output, rawUsage } = response;
  const kept = { id, usage, output, ...(requestId !== undefined && { requestId }), ...(rawUsage && { rawUsage }) };
  return { response: kept, pieces: streamed.lengths, ...(text !== streamed.text && { text: streamed.text }) };
}

/** The text of a response. Its shape is untrusted. */
function textOf({ output }: Response): string {
  if (!Array.isArray(output)) return "";
  const texts = output
    .flatMap((item) => (item?.type === "message" && Array.isArray(item.content) ? item.content : []))
    .flatMap((part) => (part?.type === "output_text" ? [String(part.text)] : []));
  return wellFormed(texts.join(""));
}
