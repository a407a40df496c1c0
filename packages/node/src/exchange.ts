import type { Sink, UniversalRequest, UniversalResponse } from "@parley/a2a/protocol";

export type Headers = UniversalResponse["headers"];

/** The body of an answer that is there as a whole. */
export type WholeBody = Exclude<UniversalResponse["body"], (...args: never) => unknown>;

/** The head of an answer. */
export type Head = Pick<UniversalResponse, "status" | "headers" | "trailers">;

/** A request and the way back to who sent it, in one object: an answer needs no other. */
export interface Exchange extends UniversalRequest {
  /** Finds the user that a framework knows, for `facts`. */
  user?: (() => unknown) | undefined;
  /** Sends a whole answer. `last`: the connection ends with it, where that can be said. */
  send(head: Head, body: WholeBody, last: boolean): void;
  /** Begins a streamed answer: its head, and where its body goes. */
  open(head: Head): Sink;
  /** Sends the head of a streamed answer, if it waits for the first bytes of the body. */
  flush(): void;
  /** Ends a streamed answer. */
  end(): void;
  /** Whether an answer has begun, so that there can be no other one. */
  readonly begun: boolean;
  /** Whether a part of the answer waits for the peer to take it. */
  readonly pending: boolean;
  /** Breaks an answer off in such a way that nobody takes it for whole. */
  breakOff(): void;
  /** Breaks the answer off when the peer takes nothing for `timeout` milliseconds while something waits to go out. */
  closeWhenStalled(timeout: number): void;
}

/** Answers that have no body, whatever they say about one (RFC 9110 §6.4.1). */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}

/** Proxies may send the whole URL as the target (RFC 9112 §3.2.2), and `OPTIONS *` has no path. */
export function originForm(url: string): string {
  if (url.startsWith("/")) return url;
  if (!URL.canParse(url)) return "/";
  const { pathname, search } = new URL(url);
  return pathname.startsWith("/") ? pathname + search : "/";
}
