import { connect, type IncomingHttpHeaders } from "node:http2";
import { Readable } from "node:stream";

/** Creates a `fetch` whose requests share one HTTP/2 connection. */
export async function fetchOver2(origin: string) {
  const session = connect(origin);
  session.on("error", () => {});
  await new Promise<void>((resolve, reject) => session.once("connect", () => resolve()).once("error", reject));
  const fetch = (url: string, { method = "GET", headers, body, signal }: RequestInit = {}): Promise<Response> =>
    new Promise((resolve, reject) => {
      const path = url.slice(origin.length) || "/";
      const own = Object.fromEntries(new Headers(headers));
      const stream = session.request({ ":method": method, ":path": path, ...own }, { endStream: body === undefined });
      stream.on("error", reject);
      signal?.addEventListener("abort", () => stream.close());
      stream.on("response", (found: IncomingHttpHeaders & { ":status"?: number }) => {
        const { ":status": status = 0, ...fields } = found;
        const list = Object.entries(fields).flatMap(([name, value]) =>
          typeof value === "string" ? [[name, value] as [string, string]] : [],
        );
        const isEmpty = method === "HEAD" || status === 204 || status === 304;
        const content = isEmpty ? null : (Readable.toWeb(stream) as ReadableStream<Uint8Array>);
        resolve(new Response(content, { status, headers: list }));
      });
      if (body !== undefined) stream.end(body);
    });
  return { fetch, end: () => session.destroy() };
}
