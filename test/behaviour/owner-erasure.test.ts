import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer, request, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { connect, defineAgent, fileBlobs, serve, type Turn } from "@parley/node";
import { bearer } from "@parley/a2a/auth";
import type { BlobStore } from "@parley/server/internal/blobs/port";
import type { Client } from "@parley/a2a";
import { message } from "@parley/a2a/model";
import { describe, expect, onTestFinished, test } from "vitest";
import { placeOfTest, stores, type StoreName } from "./stores.ts";

/** Tests the erasure of an owner who has open streams, webhooks and files (docs/retention.md). */

/** A word that only Ada's data contain. */
const marker = "erasableada";

/** Creates a promise that a test resolves. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** Creates an agent that works until the gate opens, even if its turn has already ended, and stores a file in the meantime. */
function keeper(more: Promise<void>) {
  async function* pieces(mark: string): AsyncGenerator<Uint8Array> {
    yield Buffer.from(mark.repeat(100_000));
    await more;
    yield Buffer.from(mark.repeat(100_000));
  }
  return defineAgent({
    name: "Keeper",
    description: "Keeps something open",
    version: "1.0.0",
    skills: [],
    defaultInputModes: ["*/*"],
    async *onMessage(turn: Turn) {
      const [what, mark = ""] = turn.text.split(" ");
      yield turn.working(`working ${mark}`);
      if (what === "file") yield* turn.file(pieces(mark), { name: `${mark}.bin`, artifactId: "file" });
      if (what === "ticks") {
        for (let tick = 0; tick < 5; tick += 1) yield turn.working(`tick ${tick} ${mark}`, { keep: true });
        await more;
        yield turn.completed(`done ${mark}`);
      }
    },
  });
}

/** Starts a receiver of webhooks, which answers when the test tells it to. */
async function receiver() {
  const open: ServerResponse[] = [];
  const bodies: string[] = [];
  let status: number | undefined = 503;
  const server = createServer((from, response) => {
    let body = "";
    from.on("data", (piece: Buffer) => (body += piece.toString()));
    from.on("end", () => {
      bodies.push(body);
      if (status === undefined) open.push(response);
      else response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as { port: number };
  return {
    url: (at: string) => `http://127.0.0.1:${port}/${at}`,
    bodies,
    /** Sets the status of all later responses. `undefined`: the receiver does not answer. */
    answer: (next: number | undefined) => {
      status = next;
      if (next !== undefined) for (const response of open.splice(0)) response.writeHead(next).end();
    },
  };
}

async function served(kind: StoreName, wrap: (store: BlobStore) => BlobStore = (store) => store) {
  const more = gate();
  const place = await placeOfTest(kind);
  const store = await place.open();
  const folder = await mkdtemp(join(tmpdir(), "parley-erasure-"));
  const server = await serve(keeper(more.opened), {
    port: 0,
    signals: false,
    logger: false,
    store,
    authenticator: bearer({ "ada-token": { subject: marker }, "bob-token": { subject: "bob" } }),
    push: { retryAfter: Array.from({ length: 200 }, () => 20) },
    pollInterval: 20,
    // The server does not read larger messages into memory: it stores their files while they arrive.
    limits: { bodyBytes: 1 << 20 },
    blobs: { store: wrap(fileBlobs(folder)), inlineBytes: 1000 },
  });
  onTestFinished(async () => {
    more.open();
    await server.close({ grace: 0 });
    await store.close();
    await rm(folder, { recursive: true });
  });
  const client = (name: string): Promise<Client> =>
    connect(server.url, { headers: { authorization: `Bearer ${name}-token` } });
  const files = async (): Promise<readonly string[]> => {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries.filter((each) => each.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  };
  return { server, store, more, files, ada: await client("ada"), bob: await client("bob"), written: place.written };
}

async function begun(client: Client, words: string): Promise<string> {
  const sent = await client.sendMessage({ message: message(words), configuration: { returnImmediately: true } });
  return sent.task?.id ?? expect.fail("no task");
}

describe.each(stores)("an owner is erased, in %s,", (kind) => {
  test("while a stream is open: it ends, and those of others continue", async () => {
    const { server, ada, bob, more, written } = await served(kind);
    const readers = await Promise.all(
      [ada, bob].map(async (client) => {
        const events = client.subscribeToTask(await begun(client, `ticks ${client === ada ? marker : "bob"}`));
        const seen: string[] = [];
        const over = (async () => {
          for await (const event of events) seen.push(JSON.stringify(event));
        })().catch((error: unknown) => void seen.push(String(error)));
        return { seen, over };
      }),
    );
    for (const { seen } of readers) await expect.poll(() => seen.join()).toContain("tick 4");
    expect(await server.deleteOwner({ subject: marker }, { scrub: true })).toEqual({ tasks: 1, canceled: 1 });
    await readers[0]?.over;
    more.open();
    await readers[1]?.over;
    expect(readers[1]?.seen.join()).toContain("done bob");
    // The store keeps nothing that the function yields after the erasure.
    expect((await ada.listTasks({})).totalSize).toBe(0);
    expect(await written()).not.toContain(`done ${marker}`);
    expect(await written()).not.toContain(marker);
  });

  test.each([
    ["is due again", 503],
    ["is being delivered", undefined],
  ] as const)("while a webhook %s: nothing is sent to it afterwards", async (_, status) => {
    const { server, store, ada, bob, more, written } = await served(kind);
    const [adas, bobs] = [await receiver(), await receiver()];
    adas.answer(status);
    bobs.answer(200);
    const hook = (client: Client, to: typeof adas, mark: string): Promise<unknown> => {
      const taskPushNotificationConfig = { url: to.url(mark), token: `secret-of-${mark}-0123456789` };
      const configuration = { returnImmediately: true, taskPushNotificationConfig };
      return client.sendMessage({ message: message(`ticks ${mark}`), configuration });
    };
    await hook(ada, adas, marker);
    await hook(bob, bobs, "bob");
    await expect.poll(() => [adas.bodies.length > 0, bobs.bodies.length > 0]).toEqual([true, true]);
    expect(await server.deleteOwner({ subject: marker }, { scrub: true })).toEqual({ tasks: 1, canceled: 1 });
    const sent = adas.bodies.length;
    // The delivery in progress succeeds now. Neither the next event nor the event of the cancel may follow.
    adas.answer(200);
    more.open();
    await expect.poll(() => bobs.bodies.join()).toContain("TASK_STATE_COMPLETED");
    expect(adas.bodies).toHaveLength(sent);
    expect(await store.upkeep?.owners({ owner: JSON.stringify([null, marker]), limit: 9 })).toEqual([]);
    expect(await written()).not.toContain(marker);
  });

  test("while its agent stores a file: the file is gone once it is complete", async () => {
    const { server, ada, bob, more, files, written } = await served(kind);
    const kept = await begun(bob, "file bob");
    await begun(ada, `file ${marker}`);
    await expect.poll(async () => (await files()).length).toBe(2);
    expect(await server.deleteOwner({ subject: marker }, { scrub: true })).toEqual({ tasks: 1, canceled: 1 });
    more.open();
    await expect.poll(async () => (await bob.getTask(kept)).status.state).toBe("TASK_STATE_COMPLETED");
    await expect.poll(async () => (await files()).length, { timeout: 3000 }).toBe(1);
    const [part] = (await bob.getTask(kept)).artifacts?.[0]?.parts ?? [];
    expect(part?.url).toBeDefined();
    expect(await written()).not.toContain(marker);
  });

  test("while a bucket stores a file of its agent: the file is gone once the bucket has it", async () => {
    const [got, goesOn, stored] = [gate(), gate(), gate()];
    const { server, ada, more, files } = await served(kind, (store) => ({
      ...store,
      async put(key, body) {
        const pieces: Uint8Array[] = [];
        for await (const piece of body) pieces.push(piece);
        got.open();
        await goesOn.opened;
        await store.put(key, Readable.from(pieces));
        stored.open();
      },
    }));
    more.open();
    await begun(ada, `file ${marker}`);
    await got.opened;
    expect(await server.deleteOwner({ subject: marker })).toEqual({ tasks: 1, canceled: 1 });
    goesOn.open();
    await stored.opened;
    await expect.poll(files).toEqual([]);
  });

  test("while it sends a message with a file: the received part of the file is gone once the message is abandoned", async () => {
    const { server, files } = await served(kind);
    const raw = Buffer.from(marker.repeat(400_000)).toString("base64");
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "SendMessage",
      params: { message: { messageId: "m", role: "ROLE_USER", parts: [{ raw, mediaType: "application/pdf" }] } },
    });
    const call = request(server.url, {
      method: "POST",
      headers: {
        authorization: "Bearer ada-token",
        "a2a-version": "1.0",
        "content-type": "application/json",
        "content-length": body.length,
      },
    });
    call.on("error", () => {});
    call.write(body.slice(0, -100));
    await expect.poll(async () => (await files()).length).toBe(1);
    await server.deleteOwner({ subject: marker });
    call.destroy();
    await expect.poll(files, { timeout: 3000 }).toEqual([]);
  });
});
