import { A2AError } from "@parley/a2a/internal/model/index";
import { finishing, type CallContext, type StreamReply } from "@parley/a2a/internal/protocol/index";
import { callerKey } from "./caller.ts";

/** After how many seconds a caller with too many streams may try again. */
const retryAfter = 5;

/** How many streams each caller has open, at all agents of a server. */
export class OpenStreams {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  /** @param most - Most streams of one caller. */
  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Opens a stream of a caller, and counts it until it is over or left.
   *
   * @throws A2AError `TooManyRequests` where the caller has too many of them.
   */
  async enter({ principal, address }: CallContext, begin: () => Promise<StreamReply>): Promise<StreamReply> {
    const caller = callerKey(principal, address);
    const open = this.#open.get(caller) ?? 0;
    if (open >= this.#most) {
      throw new A2AError("TooManyRequests", `A caller may have ${this.#most} streams at a time`, { retryAfter });
    }
    this.#open.set(caller, open + 1);
    let isOpen = true;
    const leave = (): void => {
      if (isOpen) this.#leave(caller);
      isOpen = false;
    };
    try {
      const reply = await begin();
      return { ...reply, batches: finishing(reply.batches, leave) };
    } catch (thrown) {
      leave();
      throw thrown;
    }
  }

  #leave(caller: string): void {
    const open = this.#open.get(caller) ?? 0;
    if (open > 1) this.#open.set(caller, open - 1);
    else this.#open.delete(caller);
  }
}
