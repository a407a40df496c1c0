import { expect, test } from "vitest";
import type { Json } from "../src/acts/format.ts";
import { LiveStream, readEvents } from "../src/call/stream.ts";

function streamOf(...chunks: readonly string[]): LiveStream {
  const body = (async function* () {
    for (const chunk of chunks) yield new TextEncoder().encode(chunk);
  })();
  return new LiveStream({ status: 200, headers: {} }, readEvents(body), () => {});
}

test("events are read from pieces of any size, with every line end, over several data lines (HTML §9.2)", async () => {
  const text = ': comment\r\nid: 1\r\ndata: {"a":\r\ndata:1}\r\n\r\nevent: x\ndata: [2]\n\nretry: 5\n\n';
  for (const size of [1, 2, 3, 7, 1000]) {
    const chunks = text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
    const stream = streamOf(...chunks);
    expect(await stream.end(5_000)).toBe(true);
    expect(stream.raw).toEqual([{ a: 1 }, [2]]);
  }
});

test.each([
  ["every client loses an event without a final blank line", 'data: {"a":1}\n', /ends inside an event/],
  ["data that is not JSON is broken", "data: hello\n\n", /event 0 of the stream is not JSON/],
  ["a line that is not a field is broken", '{"a":1}\n\n', /not an event field/],
])("%s", async (_, text, message) => {
  const stream = streamOf(text);
  await expect(stream.end(5_000)).rejects.toThrow(message);
});

test("a wait ends when the time is up", async () => {
  const silent = (async function* (): AsyncGenerator<Json> {
    await new Promise(() => {});
    yield {};
  })();
  const stream = new LiveStream({ status: 200, headers: {} }, silent, () => {});
  expect(await stream.until(1, 10)).toBe(false);
  expect(await stream.end(10)).toBe(false);
});
