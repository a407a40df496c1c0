import { stepBounds } from "@parley/a2a/internal/protocol/index";
import type { JsonValue } from "@parley/a2a/model";
import type { Turn } from "@parley/server";
import type { Budget } from "./budget.ts";
import { digestOf, fromJson, toJson, wellFormed } from "./json.ts";

/* Model answers as steps. */

/** Stores the model answers of one turn, numbered in the order of the calls. */
export class Answers {
  readonly #turn: Turn;
  readonly #budget: Budget;
  #count = 0;
  #open = 0;
  #isParallel = false;
  /** Numbers of failed answers, by prompt, because a retry has the same prompt. */
  readonly #failed = new Map<string, number>();

  constructor(turn: Turn, budget: Budget) {
    this.#turn = turn;
    this.#budget = budget;
  }

  /**
   * Calls a model once for an answer. Does not call `call` if the answer is stored.
   *
   * @param asked - The prompt, without instructions, which often contain the time.
   */
  async of<Answer extends object>(asked: unknown, call: () => Promise<Answer>): Promise<Answer> {
    const messages = toJson(asked);
    const number = this.#numberOf(messages);
    this.#isParallel ||= this.#open > 0;
    this.#open += 1;
    try {
      const prompt = await digestOf(messages);
      const stored = await this.#turn.step(`model ${number}`, async () => toJson({ ...(await call()), prompt }));
      this.#budget.add(JSON.stringify(stored));
      const answer = fromJson(stored) as Answer & { readonly prompt: string };
      if (answer.prompt !== prompt)
        this.#turn.logger.warn("Replaying a model answer to different messages", { number });
      return answer;
    } catch (error) {
      // Frameworks retry after a transient error. Among parallel calls, only the prompt identifies the retry.
      if (this.#isParallel) this.#failed.set(JSON.stringify(messages), number);
      else this.#count -= 1;
      throw error;
    } finally {
      this.#open -= 1;
    }
  }

  /** Synchronous, so that parallel calls get different numbers. */
  #numberOf(messages: JsonValue): number {
    const key = this.#failed.size === 0 ? "" : JSON.stringify(messages);
    const number = this.#failed.get(key) ?? (this.#count += 1);
    this.#failed.delete(key);
    return number;
  }
}

/** Fails as soon as an answer is too large to store, because an endless answer must not exhaust the memory. */
export function checkAnswerSize(bytes: number): void {
  if (bytes > stepBounds.result) throw new Error(`The model's answer exceeds ${stepBounds.result} bytes`);
}

const pieceDelay = 50;
const maxPiece = 4096;

/** Splits a streamed text into pieces of about 50 ms. A replay makes the same pieces, so no reader gets an artifact twice. */
export class Pieces {
  /** All pieces so far. */
  text = "";
  readonly lengths: number[] = [];
  readonly #clock: Turn["clock"];
  #pending = "";
  #sentAt = -Infinity;

  constructor(clock: Turn["clock"]) {
    this.#clock = clock;
  }

  /** Returns the piece that is due. Often this is the empty text. */
  add(delta: string): string {
    this.#pending += delta;
    // The other half of the surrogate pair may follow.
    if (/[\ud800-\udbff]$/.test(this.#pending)) return "";
    const isDue = this.#pending.length >= maxPiece || this.#clock.elapsed() - this.#sentAt >= pieceDelay;
    return isDue ? this.end() : "";
  }

  /** Returns the rest of the text. */
  end(): string {
    const piece = wellFormed(this.#pending);
    this.#pending = "";
    if (piece === "") return piece;
    this.text += piece;
    this.lengths.push(piece.length);
    this.#sentAt = this.#clock.elapsed();
    return piece;
  }
}

/** The pieces of a stored text. */
export function* piecesOf(text: string, lengths: readonly number[]): Generator<string> {
  let from = 0;
  for (const length of lengths) yield text.slice(from, (from += length));
}
