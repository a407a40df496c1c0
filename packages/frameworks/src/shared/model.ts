import { utf8Length } from "@parley/a2a/internal/base/index";
import type { JsonValue } from "@parley/a2a/model";
import type { Turn } from "@parley/server";
import { Answers, checkAnswerSize, Pieces, piecesOf } from "./answers.ts";
import type { Budget } from "./budget.ts";
import { toJsonText } from "./json.ts";

/* An AI SDK model whose answers are steps. Answers are stored as content blocks, and replayed as parts (docs/decisions/frameworks.md). */

/** A part of a stream or of content. Specifications V2, V3 and V4 differ only in members that are passed through. */
export interface ModelPart {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** The options of a model call. */
export interface ModelOptions {
  readonly prompt: readonly { readonly role: string }[];
}

/** The common members of V2, V3 and V4. */
export interface AnyModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: unknown;
  doGenerate(options: ModelOptions): PromiseLike<Generated>;
  doStream(options: ModelOptions): PromiseLike<{ readonly stream: ReadableStream<ModelPart> }>;
}

interface Generated {
  readonly content: readonly ModelPart[];
  readonly [member: string]: unknown;
}

/** A stored answer. */
interface Answer {
  /** Texts, calls, files and others, in order. A text has the lengths of its streamed `pieces`. */
  readonly blocks: readonly ModelPart[];
  /** Reason, usage and metadata. */
  readonly finish: ModelPart;
  /** Id and model of the response. */
  readonly response?: object;
}

/** Parts that take effect once the agent sees them, and are therefore held back until the answer is stored. */
const held = new Set(["tool-call", "tool-result", "tool-approval-request", "finish"]);
const content = new Set(["source", "file", "reasoning-file", "custom"]);
const live = new Set([...content, "stream-start", "response-metadata"]);

/** Makes the durable models of one turn. Answers are numbered in the order of the calls. */
export function durableModels(turn: Turn, budget: Budget): (model: AnyModel) => AnyModel {
  const answers = new Answers(turn, budget);
  const wrapped = new WeakSet<object>();
  const answerOf = ({ prompt }: ModelOptions, call: () => Promise<Answer>): Promise<Answer> =>
    answers.of(
      prompt.filter(({ role }) => role !== "system"),
      call,
    );

  async function doGenerate(model: AnyModel, options: ModelOptions): Promise<Generated> {
    const answer = await answerOf(options, async () => {
      const { content, finishReason, usage, providerMetadata, response } = await model.doGenerate(options);
      return { blocks: content, finish: { type: "finish", finishReason, usage, providerMetadata }, ...idsOf(response) };
    });
    const { type: _, ...finish } = answer.finish;
    return { content: answer.blocks.map(withoutPieces), ...finish, warnings: [], response: answer.response };
  }

  async function doStream(model: AnyModel, options: ModelOptions): Promise<{ stream: ReadableStream<ModelPart> }> {
    const { readable, writable } = new TransformStream<ModelPart, ModelPart>();
    const writer = writable.getWriter();
    writer.closed.catch(() => {});
    let isLive = false;
    await new Promise<void>((resolve, reject) => {
      const answered = answerOf(options, async () => {
        const { stream } = await model.doStream(options);
        isLive = true;
        resolve();
        return record(stream, (part) => writer.write(part), turn);
      });
      const sent = answered.then(async ({ blocks, finish, response }) => {
        resolve();
        if (!isLive && response !== undefined) await writer.write({ type: "response-metadata", ...response });
        for (const part of replayed(blocks)) if (!isLive || held.has(part.type)) await writer.write(part);
        await writer.write(finish);
        await writer.close();
      });
      sent
        .catch(async (error: unknown) => {
          if (!isLive) await writer.abort(error);
          else await writer.write({ type: "error", error }).then(() => writer.close());
        })
        .catch(() => {});
      sent.catch(reject);
    });
    return { stream: readable };
  }

  return (model) => {
    if (wrapped.has(model)) return model;
    const durable: AnyModel = {
      specificationVersion: model.specificationVersion,
      provider: model.provider,
      modelId: model.modelId,
      get supportedUrls() {
        return model.supportedUrls;
      },
      doGenerate: (options) => doGenerate(model, options),
      doStream: (options) => doStream(model, options),
    };
    wrapped.add(durable);
    return durable;
  };
}

function idsOf(response: unknown): { readonly response?: object } {
  if (typeof response !== "object" || response === null) return {};
  const { id, modelId, timestamp } = response as Readonly<Record<string, JsonValue>>;
  return { response: { id, modelId, timestamp } };
}

interface OpenBlock {
  readonly block: { type: string; text: string; readonly pieces: readonly number[] };
  readonly pieces: Pieces;
}

/**
 * Forwards an answer while it streams, and returns the complete answer. Reorders parts that are out of order, and omits unknown
 * parts.
 */
async function record(
  stream: ReadableStream<ModelPart>,
  write: (part: ModelPart) => Promise<void>,
  turn: Turn,
): Promise<Answer> {
  const blocks: ModelPart[] = [];
  const open = new Map<string, OpenBlock>();
  let finish: ModelPart | undefined;
  let response = {};
  let [kept, passed] = [0, 0];

  const count = (part: ModelPart): void => {
    const { type, delta } = part;
    const bytes =
      typeof delta === "string" ? utf8Length(delta) : held.has(type) || content.has(type) ? sizeOf(part) : 32;
    // The call repeats the streamed arguments.
    if (type.startsWith("tool-input-")) passed += bytes;
    else kept += bytes;
    checkAnswerSize(Math.max(kept, passed));
  };
  const begin = async (type: string, part: ModelPart): Promise<OpenBlock> => {
    const { id, delta: _, ...rest } = part;
    const pieces = new Pieces(turn.clock);
    const made: OpenBlock = { block: { ...rest, type, text: "", pieces: pieces.lengths }, pieces };
    open.set(`${type} ${String(id)}`, made);
    blocks.push(made.block);
    await write({ ...part, type: `${type}-start` });
    return made;
  };
  const pass = async ({ block, pieces }: OpenBlock, id: unknown, delta: string): Promise<void> => {
    if (delta === "") return;
    block.text = pieces.text;
    await write({ type: `${block.type}-delta`, id, delta });
  };
  const writeText = async (part: ModelPart): Promise<void> => {
    const { id, delta = "" } = part;
    const [type = "", moment] = part.type.split("-");
    const key = `${type} ${String(id)}`;
    const known = open.get(key);
    if (moment === "start" && known !== undefined) return;
    if (moment === "end" && known === undefined) return;
    const entry = known ?? (await begin(type, part));
    if (moment === "delta") await pass(entry, id, entry.pieces.add(String(delta)));
    if (moment !== "end") return;
    await pass(entry, id, entry.pieces.end());
    open.delete(key);
    await write(part);
  };

  for await (const part of stream) {
    turn.signal.throwIfAborted();
    if (finish !== undefined || part.type === "raw") continue;
    count(part);
    if (/^(text|reasoning)-(start|delta|end)$/.test(part.type)) await writeText(part);
    else if (part.type === "finish") finish = part;
    else if (part.type === "error") throw part["error"];
    else if (held.has(part.type)) blocks.push(part);
    else if (live.has(part.type) || part.type.startsWith("tool-input-")) {
      if (part.type === "response-metadata") response = idsOf(part).response ?? {};
      if (content.has(part.type)) blocks.push(part);
      await write(part);
    } else turn.logger.warn("Ignoring an unknown part in a model answer", { type: part.type });
  }
  if (finish === undefined) throw new Error("The model's answer ended without a finish part");
  for (const [key, entry] of open) {
    const id = key.slice(entry.block.type.length + 1);
    await pass(entry, id, entry.pieces.end());
    await write({ type: `${entry.block.type}-end`, id });
  }
  return { blocks, finish, response };
}

function sizeOf(part: ModelPart): number {
  return utf8Length(toJsonText(part));
}

const isText = ({ type }: ModelPart): boolean => type === "text" || type === "reasoning";

/** The parts of stored blocks. */
function* replayed(blocks: readonly ModelPart[]): Generator<ModelPart> {
  for (const [at, block] of blocks.entries()) {
    if (!isText(block)) {
      yield block;
      continue;
    }
    const { type, providerMetadata } = block;
    const text = String(block["text"]);
    const pieces = (block["pieces"] ?? [text.length]) as readonly number[];
    const shared = { id: `${at}`, ...(providerMetadata !== undefined && { providerMetadata }) };
    yield { type: `${type}-start`, ...shared };
    for (const delta of piecesOf(text, pieces)) yield { type: `${type}-delta`, id: shared.id, delta };
    yield { type: `${type}-end`, ...shared };
  }
}

function withoutPieces({ pieces: _, ...block }: ModelPart): ModelPart {
  return block;
}
