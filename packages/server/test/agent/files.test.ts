import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { bytesOf, type Part, type Task } from "@parley/a2a/internal/model/index";
import type { ByteSource, FileInit, FilesOptions, SentFile } from "@parley/a2a/internal/protocol/index";
import { eventually, harness, type OnMessage } from "../engine/support.ts";

/** Returns bytes that encode their position. */
function bytes(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, at) => (at * 7 + (at >> 8)) % 256);
}

async function* inPieces(whole: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < whole.length; at += size) yield whole.subarray(at, at + size);
}

/** Returns the chunk sizes of a task's only file, and the file's content. */
function received(task: Task): { readonly chunks: readonly number[]; readonly whole: Uint8Array } {
  const pieces = (task.artifacts?.[0]?.parts ?? []).map((part) => {
    if (part.raw === undefined) throw new Error("no bytes");
    return bytesOf(part);
  });
  return { chunks: pieces.map(({ length }) => length), whole: Buffer.concat(pieces) };
}

function sends(source: () => ByteSource, init: Partial<FileInit> = {}) {
  const sent: SentFile[] = [];
  const { send } = harness(async function* (turn) {
    sent.push(yield* turn.file(source(), { name: "a.bin", mediaType: "application/x-a", ...init }));
  });
  return { send, sent };
}

describe("turn.file()", () => {
  const whole = bytes(10_000);

  it.each<[string, () => ByteSource]>([
    ["an async generator of tiny pieces", () => inPieces(whole, 7)],
    ["an async generator of one large piece", () => inPieces(whole, 10_000)],
    ["a Node stream", () => Readable.from(inPieces(whole, 999))],
    ["the body of a response", () => new Response(Buffer.from(whole)).body!],
    ["a Blob", () => new Blob([Buffer.from(whole)])],
    ["a list of pieces", () => [whole.subarray(0, 10), whole.subarray(10, 10), whole.subarray(10)]],
    ["bytes", () => whole],
    ["an ArrayBuffer", () => Uint8Array.from(whole).buffer],
  ])("sends %s as one artifact in chunks of the same size (A2A 1.0 §4.2.2)", async (_, source) => {
    const { send, sent } = sends(source, { chunkBytes: 3000 });
    const task = await send("Go");
    const { chunks, whole: got } = received(task);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(chunks).toEqual([3000, 3000, 3000, 1000]);
    expect(Buffer.compare(got, whole)).toBe(0);
    expect(task.artifacts).toHaveLength(1);
    expect(task.artifacts?.[0]).toMatchObject({ name: "a.bin", artifactId: sent[0]?.artifactId });
    expect(task.artifacts?.[0]?.parts[3]).toMatchObject({ filename: "a.bin", mediaType: "application/x-a" });
    expect(sent[0]?.bytes).toBe(10_000);
  });

  it("opens, appends and closes: only the last event has lastChunk, even if the last chunk is full", async () => {
    const { stream } = harness(async function* (turn) {
      yield* turn.file(bytes(6000), { name: "a.bin", chunkBytes: 3001 });
    });
    const reading = await stream("Go");
    const updates: unknown[] = [];
    for (let item = await reading.next(); item !== undefined; item = await reading.next()) {
      const update = item.payload.value.artifactUpdate;
      if (update !== undefined) updates.push([update.append ?? false, update.lastChunk ?? false]);
    }
    expect(updates).toEqual([
      [false, false],
      [true, true],
    ]);
  });

  it("sends an empty file as one empty chunk", async () => {
    const { send } = sends(() => []);
    const task = await send("Go");
    expect(received(task)).toEqual({ chunks: [0], whole: Buffer.alloc(0) });
  });

  it("closes the source when the task is canceled: a generator between two pieces, a Node stream even while it waits", async () => {
    let closed = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) {
          await new Promise((resolve) => setImmediate(resolve));
          yield new Uint8Array(10);
        }
      } finally {
        closed = true;
      }
    }
    const stuck = new Readable({ read() {} });
    const { stream, cancel } = harness(async function* (turn) {
      yield turn.working();
      yield* turn.file(turn.text === "stuck" ? stuck : endless(), { name: "a.bin" });
    });
    const started = async (text: string): Promise<string> => {
      const reading = await stream(text);
      const id = (await reading.next())?.payload.value.task?.id ?? "";
      await reading.until(({ statusUpdate }) => statusUpdate?.status.state === "TASK_STATE_WORKING");
      return id;
    };
    const waiting = await started("stuck");
    await eventually(() => stuck.listenerCount("readable") > 0);
    await cancel(waiting);
    await eventually(() => stuck.destroyed);
    const busy = await started("Go");
    expect(closed).toBe(false);
    await cancel(busy);
    await eventually(() => closed);
  });

  it("fails the task if the source fails or yields anything but bytes, or the file has no name", async () => {
    const broken = sends(() =>
      (async function* () {
        yield bytes(10);
        throw new Error("the disk is gone");
      })(),
    );
    expect((await broken.send("Go")).status.state).toBe("TASK_STATE_FAILED");
    const texts = sends(() => Readable.from(["text"], { encoding: "utf8" }) as never);
    expect((await texts.send("Go")).status.state).toBe("TASK_STATE_FAILED");
    expect((await sends(() => bytes(1), { name: "" }).send("Go")).status.state).toBe("TASK_STATE_FAILED");
    expect((await sends(() => bytes(1), { chunkBytes: 1 }).send("Go")).status.state).toBe("TASK_STATE_FAILED");
    expect((await sends(() => 7 as never).send("Go")).status.state).toBe("TASK_STATE_FAILED");
  });

  it.each([undefined, null, "text"])("rejects as a source: %s", async (source) => {
    const { send, log } = harness(async function* (turn) {
      yield* turn.file(source as never, { name: "a.bin" });
    });
    expect((await send("Go")).status.state).toBe("TASK_STATE_FAILED");
    expect(String(log[0]?.["cause"])).toMatch("the bytes of a file must come from an async iterable");
  });

  it("ends if closing the source throws", async () => {
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise<never>(() => {}),
        return: (): never => {
          throw new Error("It cannot be closed");
        },
      }),
    };
    const onMessage: OnMessage = async function* (turn) {
      yield* turn.file(source, { name: "a.bin" });
    };
    const { send } = harness(onMessage, { behaviour: { idleTimeout: 10 } });
    expect((await send("Go")).status.message?.parts[0]?.text).toMatch("no sign of life");
  });
});

describe("turn.files()", () => {
  /** Returns the files of a message, as an agent sees them. */
  async function seen(parts: readonly Part[], options?: FilesOptions) {
    const files: unknown[] = [];
    const { send } = harness(
      async function* (turn) {
        for (const file of turn.files(options)) {
          const { name, mediaType, size, url } = file;
          const content = await file.text().catch((error: Error) => error.message);
          files.push({ name, mediaType, size, url, content });
        }
        yield turn.working();
      },
      { behaviour: { defaultInputModes: ["*"] } },
    );
    await send("", { message: { parts } });
    return files;
  }

  it("returns the bytes of parts, with chunks joined, under safe names", async () => {
    const raw = (text: string): string => Buffer.from(text).toString("base64");
    const files = await seen([
      { text: "Read these" },
      { raw: raw("one,"), filename: "../../a.csv", mediaType: "text/csv" },
      { raw: raw("two"), filename: "../../a.csv", mediaType: "text/csv" },
      { raw: raw("png"), mediaType: "image/png" },
      { raw: "", filename: "empty" },
      { text: "# Hi", filename: "hi.md" },
      { data: { a: 1 }, filename: "form.json" },
      { data: { b: 1 } },
    ]);
    expect(files).toEqual([
      { name: "a.csv", mediaType: "text/csv", size: 7, url: undefined, content: "one,two" },
      { name: "file.bin", mediaType: "image/png", size: 3, url: undefined, content: "png" },
      { name: "empty", mediaType: undefined, size: 0, url: undefined, content: "" },
      { name: "hi.md", mediaType: undefined, size: 4, url: undefined, content: "# Hi" },
      { name: "form.json", mediaType: undefined, size: undefined, url: undefined, content: '{\n  "a": 1\n}\n' },
    ]);
  });

  it("reads a URL only with the fetch that it is given", async () => {
    const parts = [{ url: "https://example.com/x/a%20b.csv?c" }, { url: "https://example.com/gone" }];
    expect(await seen(parts)).toMatchObject([
      {
        name: "a b.csv",
        url: "https://example.com/x/a%20b.csv?c",
        content: expect.stringMatching("set `fetch` to read it") as unknown,
      },
      { content: expect.stringMatching("set `fetch` to read it") as unknown },
    ]);
    const fetch = (url: string): Promise<Response> =>
      Promise.resolve(url.endsWith("gone") ? new Response("no", { status: 404 }) : new Response(`of ${url}`));
    expect(await seen(parts, { fetch })).toMatchObject([
      { content: "of https://example.com/x/a%20b.csv?c" },
      { content: 'The URL of the file "gone" answered with status 404' },
    ]);
  });
});
