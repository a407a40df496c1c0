import { S3Client } from "@bradenmacdonald/s3-lite-client";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { deleteBlobsOf, s3Blobs, type BlobStore } from "@parley/server/store";

/* A bucket that gives wrong lengths, ranges, lists and redirects (docs/files.md). */

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const secretKey = "secret-of-the-bucket-0123456789";

async function listening(answer: Answer): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function bucket(answer: Answer, prefix = "parley/") {
  const endPoint = await listening(answer);
  const client = new S3Client({
    endPoint,
    bucket: "agents",
    region: "us-east-1",
    accessKey: "TESTKEY",
    secretKey,
    pathStyle: true,
  });
  return s3Blobs(client, { prefix });
}

async function read(body: AsyncIterable<Uint8Array> | undefined): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body ?? []) pieces.push(piece);
  return Buffer.concat(pieces).toString("latin1");
}

/** Returns a response whose content differs from its headers. The response ends with the connection, so nothing else shows its length. */
const saying =
  (status: number, headers: Record<string, string>, body: string): Answer =>
  (_request, response) => {
    response.writeHead(status, { connection: "close", ...headers });
    response.end(body);
  };

describe("a bucket that gives false answers", () => {
  it.each<readonly [string, Answer]>([
    ["too few bytes", saying(206, { "content-range": "bytes 0-9/10" }, "01234")],
    ["no bytes", saying(206, { "content-range": "bytes 0-9/10" }, "")],
    ["too many bytes", saying(206, { "content-range": "bytes 0-9/10" }, "0123456789more")],
    ["another range", saying(206, { "content-range": "bytes 5-9/10" }, "56789")],
    ["a range of an unknown size", saying(206, { "content-range": "bytes 0-9/*" }, "0123456789")],
    ["a size that is not a number", saying(206, { "content-range": `bytes 0-9/${"9".repeat(400)}` }, "0123456789")],
    ["no size", saying(200, {}, "0123456789")],
    [
      "less than its Content-Length",
      (_request, response) => {
        response.writeHead(200, { "content-length": "10" });
        response.write("01234", () => response.destroy());
      },
    ],
  ])("%s: the file is Unavailable, and not silently incomplete", async (_what, answer) => {
    const store = await bucket(answer);
    // The client accepts status 206 only for a range.
    for (const range of [undefined, { start: 0, end: 9 }]) {
      const reading = async (): Promise<string> => read((await store.get("a/b", range))?.body);
      await expect(reading()).rejects.toMatchObject({ code: "Unavailable" });
    }
  });

  it("a redirected request has no credentials, and no page of another host is a file", async () => {
    const asked: IncomingMessage["headers"][] = [];
    const elsewhere = await listening((request, response) => {
      asked.push(request.headers);
      response.writeHead(200, { "content-type": "text/html" }).end("<html>");
    });
    const store = await bucket((request, response) => {
      response.writeHead(request.method === "GET" ? 302 : 307, { location: `${elsewhere}/x` }).end();
    });
    const reading = async (): Promise<string> => read((await store.get("a/b"))?.body);
    await expect(reading()).rejects.toMatchObject({ code: "Unavailable" });
    async function* body() {
      yield new Uint8Array(10);
    }
    await expect(store.delete(["a/b"])).rejects.toMatchObject({ code: "Unavailable" });
    await expect(store.put("a/c", body())).rejects.toMatchObject({ code: "Unavailable" });
    expect(JSON.stringify(asked)).not.toMatch(/AWS4|TESTKEY|secret-of-the-bucket/);
  });
});

/** Returns a list in S3's format. */
function listOf(keys: readonly string[], next?: string): string {
  const contents = keys.map(
    (key) =>
      `<Contents><Key>${key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"e"</ETag><Size>1</Size></Contents>`,
  );
  const more = next === undefined ? "" : `<NextContinuationToken>${next}</NextContinuationToken>`;
  return `<ListBucketResult><IsTruncated>${next !== undefined}</IsTruncated>${more}${contents.join("")}</ListBucketResult>`;
}

describe("a bucket that lists false keys", () => {
  /** Starts a bucket that returns these lists, whatever the request. The result includes the names that the client deleted. */
  async function listing(pages: (at: number, query: URLSearchParams) => string) {
    const deleted: string[] = [];
    let at = 0;
    const store = await bucket((request, response) => {
      const url = new URL(request.url ?? "", "http://bucket");
      if (request.method === "DELETE") {
        deleted.push(decodeURIComponent(url.pathname).slice("/agents/".length));
        response.writeHead(204).end();
        return;
      }
      const text = pages((at += 1), url.searchParams);
      response.writeHead(200, { "content-type": "application/xml" }).end(text);
    });
    return { store, deleted, pages: () => at };
  }

  it("foreign files that it lists are not deleted with those of an owner", async () => {
    const { store, deleted } = await listing((_at, query) =>
      listOf([`${query.get("prefix")}task/one`, "parley/agent/another-owner/task/two", "of-another-program", "parley"]),
    );
    expect(await deleteBlobsOf(store, { agent: "/", owner: "alice" })).toBe(1);
    expect(deleted).toHaveLength(1);
    expect(deleted[0]).toMatch(/^parley\/.*\/task\/one$/);
  });

  it("deleting an owner ends in a bucket that keeps deleted files, or has endless empty pages", async () => {
    for (const kept of [["a/b"], []]) {
      let lists = 0;
      const store: Pick<BlobStore, "delete" | "list"> = {
        delete: () => Promise.resolve(),
        list() {
          if ((lists += 1) > 100) throw new Error("It does not end");
          return Promise.resolve({ blobs: kept.map((key) => ({ key, size: 1, time: 0 })), next: "more" });
        },
      };
      const deleting = deleteBlobsOf({ ...(await bucket(() => {})), ...store }, { agent: "/", owner: "alice" });
      await expect(deleting).rejects.toMatchObject({ code: "Unavailable" });
    }
  });

  it("a page has no more entries than requested, and odd foreign keys stay unchanged", async () => {
    const odd = ["parley/a&amp;b", "parley/../../x", "parley/%2e%2e/y", "parley/é 😀", "parley/a&#10;b"];
    const { store } = await listing(() =>
      listOf([...odd, ...Array.from({ length: 2_000 }, (_, at) => `parley/k${at}`)]),
    );
    const { blobs } = await store.list({ prefix: "", limit: 10 });
    expect(blobs).toHaveLength(10);
    for (const key of ["../x", "a/../b", "a b", "a&b", "", "/a", "é", "a\nb"]) {
      await expect(store.get(key)).rejects.toThrow("Not the key of a blob");
    }
  });
});
