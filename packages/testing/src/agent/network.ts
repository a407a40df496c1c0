import type { FetchHandler } from "@parley/a2a/internal/transport/server/fetch";
import type { FetchLike } from "@parley/a2a/internal/transport/client/binding";
import type { Life } from "./life.ts";

/** A process that answers requests. */
export interface Listening {
  readonly life: Life;
  readonly fetch: FetchHandler;
}

/**
 * A `fetch` to a process in this one: no port, but the same requests, headers, JSON and streams. While no process listens,
 * connections are refused, and the connections of a process that is killed are reset.
 */
export function inProcessFetch(listening: () => Listening | Error): FetchLike {
  return async (url, init) => {
    const to = listening();
    if (to instanceof Error) throw to;
    const { method, headers, body, signal } = init;
    const request = new Request(url, { method, headers, signal, ...(body !== undefined && { body }) });
    const response = await Promise.race([to.fetch(request), to.life.killed]);
    if (response.body === null) return response;
    const { status } = response;
    return new Response(connected(response.body.getReader(), to.life), { status, headers: response.headers });
  };
}

/** What `fetch` rejects with where no process listens. */
export function refused(why: string): TypeError {
  return new TypeError("fetch failed", { cause: Object.assign(new Error(why), { code: "ECONNREFUSED" }) });
}

/** A body that breaks off when its process is killed. */
function connected(reader: ReadableStreamDefaultReader<Uint8Array>, life: Life): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        life.killed.catch((error: unknown) => controller.error(error));
      },
      async pull(controller) {
        const { done, value } = await reader.read();
        if (life.isOver) return;
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
