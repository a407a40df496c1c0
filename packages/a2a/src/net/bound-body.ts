import { A2AError } from "../model/index.ts";
import type { Limit } from "./limit.ts";

/** The response with a limited body: it fails as soon as more than `maxBytes` came. `limit` ends with the body. */
export function boundBody(response: Response, maxBytes: number, limit: Limit): Response {
  // Browsers hide the target of a redirect and its status.
  if (response.type === "opaqueredirect") throw new A2AError("InvalidResponse", "The answer is a redirect");
  const { status, statusText, headers, body } = response;
  if (body === null) {
    limit.end();
    return response;
  }
  if (Number(headers.get("content-length")) > maxBytes) {
    void body.cancel();
    throw tooLarge(maxBytes);
  }
  const bounded = bound(body.getReader(), maxBytes, limit);
  try {
    return new Response(bounded, { status, statusText, headers });
  } catch (error) {
    // Some `fetch` implementations return responses that the constructor refuses, such as one with the status 999.
    bounded.cancel().catch(() => {});
    throw error;
  }
}

function bound(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  maxBytes: number,
  limit: Limit,
): ReadableStream<Uint8Array> {
  let size = 0;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      // This also ends a body that ignores the signal.
      limit.signal.addEventListener("abort", () => {
        controller.error(limit.signal.reason);
        reader.cancel().catch(() => {});
      });
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          limit.end();
          controller.close();
          return;
        }
        size += value.byteLength;
        if (size > maxBytes) throw tooLarge(maxBytes);
        controller.enqueue(value);
      } catch (error) {
        limit.end();
        controller.error(limit.explain(error));
        // The rest is not read. An error of the stream itself has been reported already.
        reader.cancel().catch(() => {});
      }
    },
    cancel(reason) {
      limit.end();
      return reader.cancel(reason);
    },
  });
}

function tooLarge(maxBytes: number): A2AError {
  return new A2AError("InvalidResponse", `The answer is larger than ${maxBytes} bytes`);
}
