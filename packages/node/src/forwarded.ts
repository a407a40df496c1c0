import { plainAddress } from "./addresses.ts";

/* The headers in which proxies write where a request came from. Each proxy adds to the end, so they are read from the end. */

/** What one proxy says: who sent the request to it, and how. */
export interface Hop {
  /** IP address of the sender. `undefined`: the proxy does not tell it, or writes no address. */
  readonly address: string | undefined;
  /** Whether the sender's connection was encrypted. `undefined`: the proxy does not tell it. */
  readonly secure: boolean | undefined;
}

/** Reads a header of a request by its lower-case name. */
export type HeaderOf = (name: string) => string | undefined;

/** The families of headers that proxies write. A proxy writes one of them, and may pass on what a client wrote in the other. */
export type ForwardedHeaders = "x-forwarded" | "forwarded";

/** What the proxies say, the nearest first. */
export function hopsOf(headers: ForwardedHeaders, header: HeaderOf): Iterable<Hop> {
  return headers === "forwarded" ? hopsOfForwarded(header("forwarded")) : hopsOfLists(header);
}

/** `X-Forwarded-For: client, proxy` and `X-Forwarded-Proto: https`. */
function* hopsOfLists(header: HeaderOf): Iterable<Hop> {
  // Most proxies write one protocol for the whole way. Of a list, what the nearest proxy wrote counts.
  const protocol = lastOf(header("x-forwarded-proto") ?? "")?.item.toLowerCase();
  const secure = protocol === undefined || protocol === "" ? undefined : protocol === "https";
  for (let last = lastOf(header("x-forwarded-for")); last !== undefined; last = lastOf(last.before)) {
    yield { address: addressIn(last.item), secure };
  }
}

/** The last item of a list, and what is before it. */
function lastOf(list: string | undefined): { readonly item: string; readonly before: string | undefined } | undefined {
  if (list === undefined) return undefined;
  const comma = list.lastIndexOf(",");
  return { item: list.slice(comma + 1).trim(), before: comma < 0 ? undefined : list.slice(0, comma) };
}

/** `Forwarded: for=client;proto=https, for=proxy` (RFC 7239 §4). */
function* hopsOfForwarded(value: string | undefined): Iterable<Hop> {
  for (let last = lastElement(value); last !== undefined; last = lastElement(last.before)) {
    const pairs = new Map(last.pairs.map(([name, text]) => [name.toLowerCase(), text] as const));
    const protocol = pairs.get("proto")?.toLowerCase();
    yield {
      address: addressIn(pairs.get("for") ?? ""),
      secure: protocol === undefined ? undefined : protocol === "https",
    };
  }
}

/** The last element of a list of pairs: `name=value;name="value"`, and what is before it. */
export interface Element {
  readonly pairs: readonly (readonly [name: string, value: string])[];
  readonly before: string | undefined;
}

const pair = String.raw`[\w!#$%&'*+.^\`|~-]+=(?:"(?:[^"\\]|\\.)*"|[^\s",;]*)`;
const atEnd = new RegExp(String.raw`(?:^|,)[ \t]*(${pair}(?:[ \t]*;[ \t]*${pair})*)[ \t]*$`);
const eachPair = new RegExp(pair, "g");

/**
 * The last element of a list of pairs, as the nearest proxy wrote it. What a client has written before it, an open quote for
 * example, changes nothing. `undefined`: there is none, or it is not valid.
 */
export function lastElement(list: string | undefined): Element | undefined {
  const found = list === undefined ? null : atEnd.exec(list);
  if (list === undefined || found === null) return undefined;
  const pairs = (found[1] ?? "").match(eachPair) ?? [];
  return { pairs: pairs.map(split), before: found.index === 0 ? undefined : list.slice(0, found.index) };
}

function split(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  const value = text.slice(at + 1);
  return [text.slice(0, at), value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\(.)/gs, "$1") : value];
}

/** An address with or without a port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function addressIn(text: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\w+)?$/.exec(text) ?? [];
  return plainAddress(bracketed ?? plain ?? text);
}
