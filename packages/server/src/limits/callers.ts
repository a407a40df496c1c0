import { A2AError } from "@parley/a2a/internal/model/index";
import {
  anonymous,
  finishing,
  type CallContext,
  type Principal,
  type StreamReply,
} from "@parley/a2a/internal/protocol/index";

/* Who the limits of a server count for, and how many streams a caller has. */

/**
 * A caller: its name, or its address if it has no name.
 *
 * @param address - Its IP address. `undefined`: the host does not know it, so all callers without a name are one.
 */
export function callerKey({ organization, subject }: Principal, address: string | undefined): string {
  return subject === anonymous.subject && organization === undefined && address !== undefined
    ? `address ${addressBlock(address)}`
    : `principal ${JSON.stringify([organization ?? null, subject])}`;
}

/** The longest text that counts as an address. */
const maxLength = 64;

/**
 * What an address counts as: an IPv4 address as itself, also if it is mapped into IPv6, and an IPv6 address by its first 64 bits, because a
 * host can use any address that begins with them (RFC 6177 §2). Any other text is cut.
 */
export function addressBlock(address: string): string {
  if (!address.includes(":")) return address.slice(0, maxLength);
  const zone = address.indexOf("%");
  const url = `http://[${zone < 0 ? address : address.slice(0, zone)}]`;
  if (address.length > maxLength || !URL.canParse(url)) return address.slice(0, maxLength);
  // In its one canonical form, without brackets.
  const [head = "", tail = ""] = new URL(url).hostname.slice(1, -1).split("::", 2);
  const groupsOf = (text: string): readonly string[] => (text === "" ? [] : text.split(":"));
  const [first, last] = [groupsOf(head), groupsOf(tail)];
  const zeros: string[] = Array.from({ length: 8 - first.length - last.length }, () => "0");
  const groups = [...first, ...zeros, ...last];
  if (groups.slice(0, 6).join(":") !== "0:0:0:0:0:ffff") return `${groups.slice(0, 4).join(":")}::/64`;
  const bits = groups.slice(6).map((group) => Number.parseInt(group, 16));
  return bits.flatMap((each) => [each >> 8, each & 255]).join(".");
}

/** After how many seconds a caller with too many streams may retry. */
const retryAfter = 5;

/** How many streams each caller has open, at all agents of a server. */
export class OpenStreams {
  readonly #maxStreams: number;
  readonly #open = new Map<string, number>();

  /** @param maxStreams - Of one caller. */
  constructor(maxStreams: number) {
    this.#maxStreams = maxStreams;
  }

  /**
   * Opens a stream of a caller, and counts it until it has ended.
   *
   * @throws A2AError `TooManyRequests` if the caller has too many of them.
   */
  async enter({ principal, address }: CallContext, begin: () => Promise<StreamReply>): Promise<StreamReply> {
    const caller = callerKey(principal, address);
    const open = this.#open.get(caller) ?? 0;
    if (open >= this.#maxStreams) {
      throw new A2AError("TooManyRequests", `A caller may have at most ${this.#maxStreams} concurrent streams`, {
        retryAfter,
      });
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
