import type { Message } from "@parley/a2a/internal/model/index";
import type { Delegations, OpenDelegation, TurnBase } from "@parley/a2a/internal/protocol/index";
import type { DelegateCalls } from "./calls.ts";
import { messageOf, type DelegatedContent } from "./keys.ts";

/** The message of a delegation, with files that the other agent can read. */
export class Outgoing {
  /** The one that was made last in this attempt. */
  last: Message | undefined;
  /** It has links to files: each time it is made it has others, and is another message to the other agent. */
  #hasLinks = false;
  readonly #turn: TurnBase;
  readonly #rows: Delegations;
  readonly #content: DelegatedContent;
  readonly #calls: Pick<DelegateCalls, "joins">;

  constructor(turn: TurnBase, rows: Delegations, content: DelegatedContent, calls: Pick<DelegateCalls, "joins">) {
    this.#calls = calls;
    this.#turn = turn;
    this.#rows = rows;
    this.#content = content;
  }

  async make(row: OpenDelegation): Promise<Message> {
    const message = await messageOf(this.#rows, this.#content, row);
    const { outside } = this.#turn;
    if (outside === undefined) return (this.last = message);
    this.#hasLinks = outside.hasLinks(message.parts);
    return (this.last = { ...message, parts: await outside.sendable(message.parts) });
  }

  /** Whether a message that is sent twice arrives once. */
  get joins(): boolean {
    return this.#calls.joins && !this.#hasLinks;
  }

  /** The same message as before; `undefined` where it would be another one. */
  get same(): Message | undefined {
    return this.#hasLinks ? undefined : this.last;
  }
}
