import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished, vi } from "vitest";
import { systemClock, type LogFields, type Logger } from "@parley/a2a/internal/base/index";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import { Worker } from "../../src/push/outbox.ts";
import type { Outbox, OutboxHost, PushSettings, PushSigner } from "../../src/push/port.ts";
import { parkedFeature, pushFeature, type StoredConfig } from "../../src/push/stored.ts";
import { memoryStore, type FeatureRow, type Store, type TaskAppend, type TaskEffect } from "../../src/store/index.ts";
import { alice, key, making } from "../../../testing/src/store/given.ts";
import { codecV03 } from "@parley/a2a/internal/wire/v03/index";
import { codecV1 } from "@parley/a2a/internal/wire/v1/index";
import { codecV11 } from "@parley/a2a/internal/wires";
import { collect } from "../../../../test/secrets.ts";

/** Starts receivers over real HTTP, and outboxes on a store whose records the test writes. */

/** A request that a receiver got. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- Bodies are compared as a whole.
  readonly body: any;
}

/** A receiver's answer: a status, or a function. `count`: the number of earlier requests for this path. */
export type Answers = (request: Received, count: number, response: ServerResponse) => number | undefined;

export interface Receiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** Returns the requests to one path. */
  at(path: string): readonly Received[];
}

/** Starts a receiver that accepts all requests unless `answers` says otherwise. */
export async function receiver(answers: Answers = () => 204): Promise<Receiver> {
  const received: Received[] = [];
  const listener: RequestListener = (request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.on("end", () => {
      const path = request.url ?? "";
      const got = { path, headers: request.headers, text, body: JSON.parse(text) as unknown };
      const before = received.filter((each) => each.path === path).length;
      received.push(got);
      const status = answers(got, before, response);
      if (status !== undefined) response.writeHead(status).end();
    });
  };
  const server = createServer(listener);
  const url = await listening(server, "http");
  return { url, received, at: (path) => received.filter((each) => each.path === path) };
}

/** Starts a server on a free port, and closes it after the test. */
async function listening(
  server: Pick<Server, "listen" | "address" | "close" | "closeAllConnections">,
  protocol: string,
) {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A signature that contains the signed text. */
export const plainSigner: PushSigner = {
  signature: ({ id, timestamp }, secret) =>
    Promise.resolve(`v1a,${id}.${timestamp}${secret === undefined ? "" : ` v1,${secret}`}`),
  jwt: ({ id }, { audience, taskId }) => Promise.resolve(`jwt.${id}.${taskId}.${audience}`),
};

const settings: PushSettings = {
  keys: [new Uint8Array(32)],
  issuer: "http://localhost",
  net: { allowPrivate: true, maxBytes: 64 << 10, timeout: 10_000 },
  dialer: undefined,
  mutualTls: undefined,
  challenge: false,
  events: "changes",
  bodyBytes: 256 << 10,
  configsPerTask: 10,
  retryAfter: [5_000, 300_000],
  timeout: 10_000,
  concurrency: 64,
  concurrencyPerOrigin: 8,
};

export interface Line extends LogFields {
  readonly level: string;
  readonly message: string;
}

/** An outbox, and the log that the test writes for the outbox. */
export interface Harness {
  readonly outbox: Outbox;
  readonly store: Store;
  readonly log: readonly Line[];
  /** Stores records of a task, and wakes the rows of its configs, like the engine. */
  append(taskId: string, ...records: readonly NewRecord[]): Promise<void>;
  /** Creates a task with configs. Each value is the URL, or members of the config. */
  task(taskId: string, configs: Readonly<Record<string, string | Partial<StoredConfig>>>): Promise<void>;
  row(taskId: string, configId?: string): Promise<(FeatureRow & { readonly config: StoredConfig }) | undefined>;
  parked(taskId: string, configId?: string): Promise<StoredConfig | undefined>;
}

export type HarnessOptions = Partial<Omit<OutboxHost, "append">> & {
  readonly settings?: Partial<PushSettings>;
  readonly signer?: PushSigner;
};

export function harness({ settings: more, signer = plainSigner, ...host }: HarnessOptions = {}): Harness {
  const { store = memoryStore(), clock = systemClock } = host;
  const log: Line[] = [];
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      log.push({ ...fields, level, message });
      collect(message, fields);
    };
  const logger: Logger = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  const append = async (item: TaskAppend) => {
    const [outcome] = await store.append([item]);
    if (outcome === undefined) throw new Error("no outcome");
    if (outcome.ok) outbox.stored(item);
    return outcome;
  };
  const hosted = {
    store,
    clock,
    logger,
    observer: undefined,
    audit: undefined,
    agents: ["agent"],
    mergeTextParts: true,
    pollInterval: 20,
    extensionsOf: () => Promise.resolve({ uris: [], deliver: undefined }),
    ...host,
    append,
  };
  const outbox = new Worker(
    hosted,
    { ...settings, ...more },
    {
      codecs: [codecV1, codecV03, codecV11],
      open: (sealed) => Promise.resolve(JSON.parse(sealed) as object),
      signer,
    },
  );
  onTestFinished(() => outbox.stop(0));
  const wake = (): TaskEffect => ({ effect: "feature", op: "wake", feature: pushFeature, due: clock.now() });
  const rowOf = async (feature: string, taskId: string, configId: string) =>
    (await store.features(alice, taskId, feature)).find((each) => each.key === configId);
  return {
    outbox,
    store,
    log,
    async append(taskId, ...records) {
      await append({ task: key(taskId), records, effects: [wake()] });
    },
    async task(taskId, configs) {
      const effects = Object.entries(configs).map(([id, config]) => configRow(id, config));
      const made = await append({ ...making(taskId), effects: [...effects, wake()] });
      if (!made.ok) throw new Error(made.reason);
    },
    async row(taskId, configId = "c") {
      const row = await rowOf(pushFeature, taskId, configId);
      return row && { ...row, config: JSON.parse(row.value) as StoredConfig };
    },
    async parked(taskId, configId = "c") {
      const row = await rowOf(parkedFeature, taskId, configId);
      return row && (JSON.parse(row.value) as StoredConfig);
    },
  };
}

/** Returns the row of a config without deliveries. */
export function configRow(id: string, given: string | Partial<StoredConfig>, due?: number): TaskEffect {
  const config: StoredConfig = {
    url: "",
    version: "1.0",
    created: 0,
    nonce: `n-${id}`,
    cursor: 0,
    sequence: 0,
    delivered: 0,
    ...(typeof given === "string" ? { url: given } : given),
  };
  const set = { effect: "feature", op: "set", feature: pushFeature, key: id, value: JSON.stringify(config) } as const;
  return due === undefined ? set : { ...set, due };
}

/** Returns the states and artifacts that a receiver got, in short form. */
export function gists(received: readonly Received[]): readonly string[] {
  return received.map(({ body: { statusUpdate, artifactUpdate, task, ...other } }) => {
    if (statusUpdate) return stateOf(statusUpdate.status.state);
    if (artifactUpdate) return `${artifactUpdate.artifact.artifactId}: ${textsOf(artifactUpdate.artifact)}`;
    return task ? `task ${stateOf(task.status.state)}` : `task ${other.status?.state}`;
  });
}

function stateOf(state: string): string {
  return state.replace("TASK_STATE_", "").toLowerCase();
}

function textsOf({ parts }: { readonly parts: readonly { readonly text?: string }[] }): string {
  return parts.map(({ text }) => text).join("|");
}

/** Resolves once the check passes. */
export function until(check: () => unknown): Promise<void> {
  return vi.waitFor(
    async () => {
      await check();
    },
    { interval: 5 },
  );
}
