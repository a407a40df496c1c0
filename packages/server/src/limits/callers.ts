import { A2AError } from "@parley/a2a/internal/model/index";
import {
  anonymous,
  type CallContext,
  finishing,
  type Principal,
  type StreamReply,
} from "@parley/a2a/internal/protocol/index";

/* Who the limits of a server count for. */

/**
 * A caller: its name, or its address where it has no name.
 *
 * @param address - Its IP address. `undefined`: the host does not know it, so that all callers without a name are one.
 */
export function callerKey({ organization, subject }: Principal, address: string | undefined): string {
  return subject === anonymous.subject && organization === undefined && address !== undefined
    ? `address ${addressBlock(address)}`
    : `principal ${JSON.stringify([organization ?? null, subject])}`;
}

/** Longest text that counts as an address. */
const longest = 64;

/**
 * What an address counts as: an IPv4 address as itself, also where it is mapped into IPv6, and an IPv6 address by its first 64
 * bits, because a host can use any address that begins with them (RFC 6177 §2). A text that is no address is cut.
 */
export function addressBlock(address: string): string {
  if (!address.includes(":")) return address.slice(0, longest);
  const zone = address.indexOf("%");
  const url = `http://[${zone < 0 ? address : address.slice(0, zone)}]`;
  if (address.length > longest || !URL.canParse(url)) return address.slice(0, longest);
  // In its one canonical form, without brackets.
  const [head = "", tail] = new URL(url).hostname.slice(1, -1).split("::", 2);
  const first = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros: string[] = Array.from({ length: 8 - first.length - last.length }, () => "0");
  const groups = [...first, ...zeros, ...last];
  if (groups.slice(0, 6).join(":") === "0:0:0:0:0:ffff") return mapped(groups.slice(6));
  return `${groups.slice(0, 4).join(":")}::/64`;
}

/** The last 32 bits as an IPv4 address. */
function mapped(groups: readonly string[]): string {
  return groups
    .flatMap((group) => {
      const bits = Number.parseInt(group, 16);
      return [bits >> 8, bits & 255];
    })
    .join(".");
}

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
