import type { Server } from "../serve-options.ts";

/** Characters that are sent at a time, and at most a piece more. */
const enough = 1 << 18;

/** Exports that this process reads for the first one, which asks for one piece after the other. */
export class Exports {
  readonly #open = new Map<number, AsyncIterator<string>>();

  /** The next piece. `undefined`: that was all. */
  async next(id: number, begin: () => ReturnType<Server["exportOwner"]>): Promise<string | undefined> {
    const pieces = this.#open.get(id) ?? begin()[Symbol.asyncIterator]();
    this.#open.set(id, pieces);
    let text = "";
    try {
      while (text.length < enough) {
        const next = await pieces.next();
        if (next.done === true) break;
        text += next.value;
      }
    } catch (error) {
      this.#open.delete(id);
      throw error;
    }
    if (text === "") this.#open.delete(id);
    return text === "" ? undefined : text;
  }

  /** Nobody reads the rest. */
  end(id: number): void {
    const pieces = this.#open.get(id);
    this.#open.delete(id);
    void pieces?.return?.().catch(() => {});
  }
}
