import type { Json } from "./format.ts";
import { readEvents } from "./sse.ts";
import { LiveStream } from "./stream.ts";

/** What a server answered, as it came. */
export interface HttpAnswer {
  readonly status: number;
  /** By their names in small letters. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The body, where it is JSON. */
  readonly json?: Json;
}

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The server could not be reached, or did not answer in time. */
export class Unreachable extends Error {}

/** Sends a request. An event stream is given while it is still open, anything else when it is whole. */
export async function send(request: HttpRequest, timeout: number): Promise<HttpAnswer | LiveStream> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new Unreachable(`no answer within ${timeout} ms`)), timeout);
  try {
    const response = await fetch(request.url, {
      method: request.method,
      headers: request.headers,
      // Text would bring a content type along where a test sends none.
      ...(request.body === undefined ? {} : { body: new TextEncoder().encode(request.body) }),
      redirect: "manual",
      signal: controller.signal,
    });
    const headers = Object.fromEntries(response.headers);
    const head = { status: response.status, headers };
    if (/^\s*text\/event-stream\b/i.test(headers["content-type"] ?? "") && response.body !== null) {
      return new LiveStream(head, readEvents(response.body), () => controller.abort());
    }
    const text = await response.text();
    return { ...head, text, ...parsed(text) };
  } catch (error) {
    if (error instanceof Unreachable) throw error;
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Unreachable(`${request.method} ${request.url} got no answer: ${reason}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function parsed(text: string): { readonly json?: Json } {
  if (text === "") return {};
  try {
    return { json: JSON.parse(text) as Json };
  } catch {
    return {};
  }
}
