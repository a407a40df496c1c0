import { describe, expect, onTestFinished, test } from "vitest";
import {
  connect,
  connectJsonRpc,
  download,
  type ConnectOptions,
  type FetchLike,
  type FileContent,
} from "../../src/client/index.ts";
import { createHandler, type Handler } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import { text, type StreamResponse, type TaskState } from "../../src/model/index.ts";
import type { Turn } from "../../src/protocol/index.ts";
import { errorOf, soon } from "./support.ts";

const publicUrl = "https://agents.example/one";
const whole = Uint8Array.from({ length: 50_000 }, (_, at) => (at * 31 + (at >> 8)) % 256);

const done = "TASK_STATE_COMPLETED";

let release = (): void => {};

async function* halves(held: Promise<void>): AsyncGenerator<Uint8Array> {
  yield whole.subarray(0, 20_000);
  await held;
  yield whole.subarray(20_000);
}

/** Sends files of the kind that is named in the message. */
const agent = defineAgent({
  name: "Files",
  description: "Gives files.",
  version: "1.0.0",
  skills: [],
  defaultOutputModes: ["*"],
  async *onMessage(turn: Turn) {
    const init = { artifactId: "it", name: "a.bin", chunkBytes: 3_000 };
    if (turn.text === "file") yield* turn.file(whole, init);
    else if (turn.text === "slow") yield* turn.file(halves(new Promise<void>((resolve) => (release = resolve))), init);
    else if (turn.text === "broken") {
      yield* turn.file(
        (async function* () {
          yield whole;
          throw new Error("gone");
        })(),
        init,
      );
    } else if (turn.text === "many") {
      yield turn.artifact({
        artifactId: "it",
        name: "all",
        parts: [
          text("Hi "),
          text("there \ud83d"),
          text("\ude00"),
          { data: { a: 1 } },
          { data: 2 },
          { url: "https://example.com/x.csv", filename: "x.csv" },
          { raw: "AAE=", mediaType: "image/png" },
          { raw: "AAE=" },
        ],
      });
    } else if (turn.text === "mixed") {
      // The agent sends three artifacts that grow in parallel, and then another one.
      for (const id of ["a", "b", "c"])
        yield turn.artifact({ artifactId: id, name: id, parts: [text(`${id}1`)], open: true });
      for (const id of ["c", "b", "a"]) yield turn.append(id, [text(`${id}2`)], { last: true });
      yield turn.artifact({ artifactId: "d", name: "d", parts: [text("d")] });
    }
  },
});

function host(): Handler {
  const handler = createHandler(agent, { publicUrl, store: memoryStore() });
  onTestFinished(() => handler.close({ grace: 0 }));
  return handler;
}

const fetchOf =
  (handler: Handler): FetchLike =>
  (url, init) =>
    handler.fetch(new Request(url, init));

/** Returns a `fetch` that breaks each event stream, each time after more bytes. */
function breaking(fetch: FetchLike): FetchLike {
  let limit = 2_000;
  return async (url, init) => {
    const response = await fetch(url, init);
    const { body } = response;
    if (body === null || !response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    let room = (limit += 9_000);
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(chunk.subarray(0, room));
        room -= chunk.byteLength;
        if (room <= 0) controller.error(new TypeError("terminated"));
      },
    });
    return new Response(body.pipeThrough(cut), response);
  };
}

async function begun(word: string, options: ConnectOptions = {}, returnImmediately = false) {
  const handler = host();
  const plain = await connect(publicUrl, { fetch: fetchOf(handler) });
  const { task } = await plain.sendMessage({ message: word, configuration: { returnImmediately } });
  if (task === undefined) throw new Error("no task");
  const client = await connect(publicUrl, { fetch: breaking(fetchOf(handler)), ...soon, ...options });
  return { client, taskId: task.id, task, handler };
}

async function all(files: AsyncIterable<FileContent>): Promise<[string, string][]> {
  const read: [string, string][] = [];
  for await (const file of files) read.push([file.name, await file.text()]);
  return read;
}

describe("client.download()", () => {
  test.each(["JSONRPC", "HTTP+JSON"])(
    "joins the chunks of a finished task, over connections that break (%s)",
    async (binding) => {
      const { client, taskId } = await begun("file", { binding });
      for await (const file of client.download({ taskId, artifactId: "it" })) {
        expect(file.name).toBe("a.bin");
        expect(Buffer.compare(await file.bytes(), whole)).toBe(0);
      }
    },
  );

  test("yields chunks while the task still runs", async () => {
    const { client, taskId } = await begun("slow", {}, true);
    let seen = 0;
    for await (const file of client.download({ taskId, artifactId: "it" })) {
      for await (const piece of file.stream()) {
        expect(Buffer.compare(piece, whole.subarray(seen, seen + piece.length))).toBe(0);
        seen += piece.length;
        // The full chunks of the first half arrive before the agent sends the second half.
        if (seen === 18_000) release();
      }
    }
    expect(seen).toBe(whole.length);
  });

  test("joins the chunks of a complete artifact, with and without client.download()", async () => {
    const { client, task, taskId, handler } = await begun("file");
    const [artifact] = task.artifacts ?? [];
    if (artifact === undefined) throw new Error("no artifact");
    const bytes: Uint8Array[] = [];
    for await (const file of client.download(artifact)) bytes.push(await file.bytes());
    const small = await connectJsonRpc(publicUrl, { fetch: fetchOf(handler) });
    for await (const file of download(small, { taskId })) bytes.push(await file.bytes());
    expect(bytes.map((one) => Buffer.compare(one, whole))).toEqual([0, 0]);
    expect(() => small.download({ taskId })).toThrow(expect.objectContaining({ code: "UnsupportedOperation" }));
  });

  test("returns each file of an artifact: text as one, data as JSON, URLs through the given fetch", async () => {
    const { client, taskId } = await begun("many");
    const fetch = (url: string): Promise<Response> => Promise.resolve(new Response(`of ${url}`));
    expect(await all(client.download({ taskId }, { fetch, extensionOf: (type) => type.split("/")[1] }))).toEqual([
      ["all.txt", "Hi there \u{1f600}"],
      ["all.json", '{\n  "a": 1\n}\n'],
      ["all.json", "2\n"],
      ["x.csv", "of https://example.com/x.csv"],
      ["all.png", "\u0000\u0001"],
      ["all.bin", "\u0000\u0001"],
    ]);
    const error = await errorOf(all(client.download({ taskId })));
    expect(error).toMatchObject({ code: "UnsupportedOperation", metadata: { url: "https://example.com/x.csv" } });
  });

  test("returns all artifacts of a task, also those that grew at the same time, and skips unread ones", async () => {
    const { client, taskId } = await begun("mixed");
    expect(await all(client.download({ taskId }))).toEqual([
      ["a.txt", "a1a2"],
      ["d.txt", "d"],
      ["b.txt", "b1b2"],
      ["c.txt", "c1c2"],
    ]);
    const names: string[] = [];
    for await (const file of client.download({ taskId })) names.push(file.name);
    expect(names).toEqual(["a.txt", "d.txt", "b.txt", "c.txt"]);
    expect(await all(client.download({ taskId, artifactId: "b" }))).toEqual([["b.txt", "b1b2"]]);
  });

  test("continues if the task is now stored with merged texts, but not if they were replaced", async () => {
    const { client } = await begun("many");
    const ids = { taskId: "t", contextId: "c" };
    const chunk = (words: string, append: boolean): StreamResponse => ({
      artifactUpdate: { ...ids, artifact: { artifactId: "it", parts: [text(words)] }, append },
    });
    const task = (words: string, state: TaskState = "TASK_STATE_WORKING"): StreamResponse => ({
      task: { id: "t", status: { state }, artifacts: [{ artifactId: "it", parts: [text(words)] }] },
    });
    const filesOf = (...events: readonly StreamResponse[]) =>
      all(
        client.download({
          events: (async function* () {
            yield* events;
          })(),
        }),
      );
    const begin = [chunk("one ", false), chunk("two ", true)];
    expect(
      await filesOf(...begin, task("one two three "), chunk("four", true), task("one two three four", done)),
    ).toEqual([["it.txt", "one two three four"]]);
    for (const other of ["one TWO three", "one "]) {
      expect(await errorOf(filesOf(...begin, task(other)))).toMatchObject({
        code: "InvalidResponse",
        message: expect.stringMatching(/has replaced artifact "it" while it was read/) as unknown,
      });
    }
  });

  test("rejects an artifact that the task does not have, and more bytes than maxBytes", async () => {
    const { client, taskId } = await begun("file");
    expect(await errorOf(all(client.download({ taskId, artifactId: "other" })))).toMatchObject({
      code: "InvalidParams",
    });
    expect(await errorOf(all(client.download({ taskId: "none" })))).toMatchObject({ code: "TaskNotFound" });
    expect(await errorOf(all(client.download({ taskId }, { maxBytes: 49_999 })))).toMatchObject({
      code: "InvalidResponse",
    });
    expect(await all(client.download({ taskId }, { maxBytes: 50_000 }))).toHaveLength(1);
  });

  test("fails if the task fails before the file is complete", async () => {
    const { client, taskId } = await begun("broken");
    expect(await errorOf(all(client.download({ taskId })))).toMatchObject({
      code: "InvalidResponse",
      message: expect.stringMatching(/ended in TASK_STATE_FAILED before artifact "it" was complete/) as unknown,
    });
  });
});
