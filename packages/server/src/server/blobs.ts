import { lazyBlobs, type BlobRooms, type BlobSettings, type LazyBlobs } from "../blobs/lazy.ts";
import type { BlobOptions } from "../blobs/options.ts";
import { isLoopback, type Bytes } from "@parley/a2a/internal/base/index";
import type { FileReceiver, UniversalRequest, UniversalResponse } from "@parley/a2a/internal/protocol/index";
import { sealKeyring, type SealKeyring } from "../seal/index.ts";
import type { PublicEndpoint } from "@parley/a2a/internal/transport/router/router";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import { keysOf, makeKeys } from "./push.ts";

/* The option `blobs` of a handler: its defaults, and the address of files (docs/files.md). */

/** Path of links to files below the public URL. */
const filePath = "/.well-known/parley/file";

const minute = 60_000;
const hour = 60 * minute;
const week = 7 * 24 * hour;

interface Around {
  /** The public URL, without a slash at its end. */
  readonly publicUrl: string;
  /** The keys of webhooks, where they are on. */
  readonly pushKeys: readonly [Bytes, ...Bytes[]] | undefined;
}

/**
 * What keeps large files outside of the store; `undefined` where nothing does.
 *
 * @throws A2AError `InvalidParams` where an option is wrong.
 */
export function blobsOf(
  options: BlobOptions | undefined,
  around: Around,
): ((rooms: BlobRooms) => LazyBlobs) | undefined {
  if (options === undefined) return undefined;
  const settings = settingsOf(options, around);
  return (rooms) => lazyBlobs(settings, rooms);
}

/** Defaults of the options. */
const inlineBytes = 256 << 10;
const messageBytes = 1.5 * 2 ** 30;

const methods = ["put", "get", "delete", "list"] as const;

function settingsOf(options: BlobOptions, { publicUrl, pushKeys }: Around): BlobSettings {
  const store = (options as Partial<BlobOptions> | null)?.store;
  const missing = methods.find((name) => typeof store?.[name] !== "function");
  if (store === undefined || missing !== undefined) {
    throw cannotServe("blobs.store", "must be a store of files: fileBlobs() of @parley/node, or s3Blobs()");
  }
  const { links = "store" } = options;
  if (links !== "store" && links !== "server") throw cannotServe("blobs.links", 'must be "store" or "server"');
  const ownLinks = links === "server" || store.link === undefined;
  const keys = options.keys === undefined ? pushKeys : keysOf(options.keys, "blobs.keys");
  if (keys === undefined && ownLinks && !isLoopback(new URL(publicUrl).hostname)) {
    throw cannotServe("blobs.keys", `is required where publicUrl is not a loopback address: ${makeKeys}`);
  }
  // Made when it is needed: Workers allow no random values before their first request.
  let keyring: SealKeyring | undefined;
  const most = number("messageBytes", options.messageBytes, messageBytes, 1);
  return {
    store,
    links,
    keyring: () => (keyring ??= sealKeyring(keys ?? [crypto.getRandomValues(new Uint8Array(32))], "parley files"))(),
    url: publicUrl + filePath,
    inlineBytes: number("inlineBytes", options.inlineBytes, inlineBytes, 0),
    fileBytes: number("fileBytes", options.fileBytes, 2 ** 30, 1),
    taskBytes: number("taskBytes", options.taskBytes, 4 * 2 ** 30, 1),
    uploadBytes: number("uploadBytes", options.uploadBytes, 200 << 20, 1),
    messageBytes: most,
    unfinishedBytes: number("unfinishedBytes", options.unfinishedBytes, 4 * most, most),
    linkTime: number("linkTime", options.linkTime, 15 * minute, 1000, week),
    keepUnused: number("keepUnused", options.keepUnused, 24 * hour, minute),
    interval: number("interval", options.interval, hour, 1000),
  };
}

function number(name: string, value: unknown, usual: number, least: number, most = Infinity): number {
  if (value === undefined) return usual;
  if (typeof value === "number" && value >= least && value <= most) return value;
  throw cannotServe(
    `blobs.${name}`,
    `must be a number of at least ${least}${most === Infinity ? "" : `, and at most ${most}`}`,
  );
}

const mebi = 1 << 20;

/** The default of `limits.unfinishedBytes`, where files that are being stored take a part of it; `undefined` where there are none. */
export function roomFor(options: BlobOptions | undefined, bodyBytes: number): number | undefined {
  const buffer = options?.store.uploadBytes ?? mebi;
  return options && Math.max(64 * mebi, 4 * bodyBytes, 16 * buffer);
}

/** Takes large files out of messages. `open` begins with a message. */
export function fileReceiver({ store, ...options }: BlobOptions, open: FileReceiver["open"]): FileReceiver {
  return {
    inlineBytes: options.inlineBytes ?? inlineBytes,
    messageBytes: options.messageBytes ?? messageBytes,
    bufferBytes: store.uploadBytes ?? mebi,
    open,
  };
}

/** Answers links to files. `basePath`: what is before each path of the server. */
export function fileEndpoint(
  basePath: string,
  file: (request: UniversalRequest) => Promise<UniversalResponse | undefined>,
): PublicEndpoint {
  return {
    path: basePath + filePath,
    name: "The address of files",
    answer: async (request) => (await file(request)) ?? { status: 404, headers: {} },
  };
}
