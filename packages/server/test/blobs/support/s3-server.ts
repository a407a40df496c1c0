import { createHash, createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/*
 * A test double with the part of the S3 protocol that the tests need, in memory: path style, signature version 4 in headers and in URLs, multipart
 * uploads, ranges, and ListObjectsV2. The same tests also pass with a real server (see `openBucket`).
 */

export const credentials = { accessKey: "TESTKEY", secretKey: "secret-of-the-bucket-0123456789" } as const;

interface Stored {
  readonly bytes: Buffer;
  readonly time: Date;
}

/** A running server. */
export interface S3Server {
  readonly url: string;
  readonly objects: Map<string, Stored>;
  /** The uploads that are neither complete nor aborted. */
  readonly uploads: Map<string, Map<number, Buffer>>;
  /** If set, the server answers every request with this status. */
  failing: number | undefined;
  close(): Promise<void>;
}

export async function startS3(): Promise<S3Server> {
  const server = createServer((request, response) => {
    answer(state, request, response).catch((error: unknown) => {
      const failure = error instanceof Failure ? error : new Failure(500, "InternalError");
      send(response, failure.status, `<Error><Code>${failure.code}</Code><Message>${request.url}</Message></Error>`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const state: S3Server = {
    url: `http://127.0.0.1:${port}`,
    objects: new Map(),
    uploads: new Map(),
    failing: undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return state;
}

class Failure extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string) {
    super(code);
    this.status = status;
    this.code = code;
  }
}

function send(
  response: ServerResponse,
  status: number,
  body: string | Buffer,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-length": String(Buffer.byteLength(body)), ...headers }).end(body);
}

async function answer(state: S3Server, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces);
  if (state.failing !== undefined) throw new Failure(state.failing, "SlowDown");
  const url = new URL(request.url ?? "/", state.url);
  checkSignature(request, url, body);
  const [, bucket, ...rest] = url.pathname.split("/").map(decodeURIComponent);
  if (bucket !== "agents") throw new Failure(404, "NoSuchBucket");
  const name = rest.join("/");
  const upload = url.searchParams.get("uploadId");
  if (request.method === "GET" && name === "") return send(response, 200, listed(state, url.searchParams));
  if (request.method === "GET") return read(state, name, url, request, response);
  if (request.method === "PUT" && upload !== null) {
    state.uploads.get(upload)?.set(Number(url.searchParams.get("partNumber")), body);
    return send(response, 200, "", { etag: etagOf(body) });
  }
  if (request.method === "PUT") {
    state.objects.set(name, { bytes: body, time: new Date() });
    return send(response, 200, "", { etag: etagOf(body) });
  }
  if (request.method === "POST" && upload !== null) return complete(state, name, upload, response);
  if (request.method === "POST") {
    const id = randomUUID();
    state.uploads.set(id, new Map());
    const xml = `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`;
    return send(response, 200, xml);
  }
  if (request.method !== "DELETE") throw new Failure(405, "MethodNotAllowed");
  if (upload !== null) state.uploads.delete(upload);
  else state.objects.delete(name);
  response.writeHead(204).end();
}

function read(state: S3Server, name: string, url: URL, request: IncomingMessage, response: ServerResponse): void {
  const found = state.objects.get(name);
  if (found === undefined) throw new Failure(404, "NoSuchKey");
  const { bytes } = found;
  const headers: Record<string, string> = { etag: etagOf(bytes) };
  for (const header of ["content-type", "content-disposition"]) {
    const value = url.searchParams.get(`response-${header}`);
    if (value !== null) headers[header] = value;
  }
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
  if (from === undefined) return send(response, 200, bytes, headers);
  if (Number(from) >= bytes.length) throw new Failure(416, "InvalidRange");
  const end = to === "" || to === undefined ? bytes.length - 1 : Math.min(Number(to), bytes.length - 1);
  headers["content-range"] = `bytes ${from}-${end}/${bytes.length}`;
  send(response, 206, bytes.subarray(Number(from), end + 1), headers);
}

function complete(state: S3Server, name: string, upload: string, response: ServerResponse): void {
  const parts = [...(state.uploads.get(upload) ?? [])].sort(([one], [other]) => one - other);
  if (parts.slice(0, -1).some(([, part]) => part.length < 5 << 20)) throw new Failure(400, "EntityTooSmall");
  const bytes = Buffer.concat(parts.map(([, part]) => part));
  state.objects.set(name, { bytes, time: new Date() });
  state.uploads.delete(upload);
  const etag = etagOf(bytes);
  const xml = `<CompleteMultipartUploadResult><ETag>${etag}</ETag></CompleteMultipartUploadResult>`;
  send(response, 200, xml, { etag });
}

function listed({ objects }: S3Server, query: URLSearchParams): string {
  const after = query.get("continuation-token") ?? "";
  const all = [...objects.keys()].filter((key) => key.startsWith(query.get("prefix") ?? "") && key > after).sort();
  const page = all.slice(0, Number(query.get("max-keys")));
  const contents = page.map((key) => {
    const { bytes, time } = objects.get(key) as Stored;
    const about = `<Key>${key}</Key><LastModified>${time.toISOString()}</LastModified><ETag>${etagOf(bytes)}</ETag>`;
    return `<Contents>${about}<Size>${bytes.length}</Size></Contents>`;
  });
  const more = page.length < all.length;
  const next = more ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : "";
  return `<ListBucketResult><IsTruncated>${more}</IsTruncated>${next}${contents.join("")}</ListBucketResult>`;
}

function etagOf(bytes: Buffer): string {
  return `"${createHash("md5").update(bytes).digest("hex")}"`;
}

/** Checks signature version 4, in the header or in the query, and the hash of the body. */
function checkSignature(request: IncomingMessage, url: URL, body: Buffer): void {
  const query = url.searchParams;
  const inQuery = query.get("X-Amz-Signature");
  const header = request.headers.authorization ?? "";
  const given = inQuery ?? /Signature=([0-9a-f]{64})/.exec(header)?.[1] ?? "";
  const credential = query.get("X-Amz-Credential") ?? /Credential=([^,]+)/.exec(header)?.[1] ?? "";
  const names = query.get("X-Amz-SignedHeaders") ?? /SignedHeaders=([^,]+)/.exec(header)?.[1] ?? "";
  const date = query.get("X-Amz-Date") ?? String(request.headers["x-amz-date"]);
  const hash = inQuery === null ? String(request.headers["x-amz-content-sha256"]) : "UNSIGNED-PAYLOAD";
  if (hash !== "UNSIGNED-PAYLOAD" && hash !== createHash("sha256").update(body).digest("hex")) {
    throw new Failure(400, "XAmzContentSHA256Mismatch");
  }
  const [accessKey, ...scope] = credential.split("/");
  const canonical = [
    request.method,
    url.pathname,
    [...query]
      .filter(([name]) => name !== "X-Amz-Signature")
      .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
      .sort()
      .join("&"),
    ...names.split(";").map((name) => `${name}:${String(request.headers[name]).trim()}`),
    "",
    names,
    hash,
  ].join("\n");
  const text = ["AWS4-HMAC-SHA256", date, scope.join("/"), createHash("sha256").update(canonical).digest("hex")].join(
    "\n",
  );
  const hmac = (key: string | Buffer, value: string): Buffer => createHmac("sha256", key).update(value).digest();
  const key = scope.reduce<string | Buffer>((last, part) => hmac(last, part), `AWS4${credentials.secretKey}`);
  const wanted = hmac(key, text);
  const isRight =
    accessKey === credentials.accessKey && given.length === 64 && timingSafeEqual(wanted, Buffer.from(given, "hex"));
  if (!isRight) throw new Failure(403, "SignatureDoesNotMatch");
}

function escaped(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}
