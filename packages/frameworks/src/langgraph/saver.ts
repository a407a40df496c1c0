import { fromBase64, toBase64 } from "@parley/a2a/model";
import { parseJson } from "../shared/json.ts";
import type { Feed } from "./feed.ts";
import { BaseCheckpointSaver } from "./peer.ts";
import { answersIn, type Reader } from "./reader.ts";
import { indexOf, type Codec, type Thread, type Typed, type Write } from "./thread.ts";

/* A checkpoint saver that stores checkpoints with the task. */

type Saver = InstanceType<typeof BaseCheckpointSaver>;
type Config = Parameters<Saver["getTuple"]>[0];
type Tuple = NonNullable<Awaited<ReturnType<Saver["getTuple"]>>>;

/** Channels that record that a node waits, or which answer it got. Writes to these channels are stored with the question. */
const waiting = new Set(["__interrupt__", "__resume__"]);

/** Stores the checkpoints of one turn. With the durability "sync", LangGraph waits until each is stored. */
export class TaskSaver extends BaseCheckpointSaver implements Codec {
  readonly #thread: Thread;
  readonly #feed: Feed;
  #reader: Reader | undefined;
  /** Ids of input checkpoints. The next writes to such a checkpoint are the input. */
  readonly #inputs = new Set<string>();
  #deferred: (() => void)[] = [];

  constructor(thread: Thread, feed: Feed) {
    super();
    this.#thread = thread;
    this.#feed = feed;
  }

  /** Begins a run. Messages that the thread already has are not answers of this turn. */
  async begin(reader: Reader): Promise<void> {
    this.#reader = reader;
    for (const [, { checkpoint, writes }] of this.#thread.all())
      for (const typed of [checkpoint, ...writes.map((write) => write[3])]) reader.had(await this.read(typed));
  }

  /** At the end of a run, adds the deferred writes of waiting nodes. */
  settle(): void {
    for (const apply of this.#deferred.splice(0)) apply();
  }

  async typed(value: unknown): Promise<Typed> {
    const [type, bytes] = await this.serde.dumpsTyped(value);
    return type === "json" ? [type, parseJson(new TextDecoder().decode(bytes))] : [type, toBase64(bytes)];
  }

  async read([type, value]: Typed): Promise<unknown> {
    return this.serde.loadsTyped(
      type,
      type === "json" ? JSON.stringify(value) : fromBase64(typeof value === "string" ? value : ""),
    );
  }

  async getTuple(config: Config): Promise<Tuple | undefined> {
    const { namespace, id } = placeOf(config);
    const found = this.#thread.find(namespace, id);
    return found && this.#tuple(config, namespace, found);
  }

  async *list(config: Config, { limit = Infinity }: { readonly limit?: number } = {}): AsyncGenerator<Tuple> {
    let left = limit;
    for (const [namespace, found] of this.#thread.all())
      if (namespace === placeOf(config).namespace && (left -= 1) >= 0) yield this.#tuple(config, namespace, found);
  }

  async put(
    config: Config,
    checkpoint: Parameters<Saver["put"]>[1],
    metadata: Parameters<Saver["put"]>[2],
  ): Promise<Config> {
    const { namespace, id: parent } = placeOf(config);
    const { id } = checkpoint;
    if (metadata.source === "input") this.#inputs.add(id);
    this.#reader?.had(checkpoint);
    const entry = {
      id,
      ...(parent !== undefined && { parent }),
      checkpoint: await this.typed(checkpoint),
      metadata: await this.typed(metadata),
      writes: [],
    };
    // A delta channel is reconstructed from the writes of earlier checkpoints.
    const needsParents = "counters_since_delta_snapshot" in metadata;
    await this.#feed.save(() => this.#thread.put(namespace, entry, needsParents, metadata.source === "loop"));
    return { configurable: { ...config.configurable, checkpoint_ns: namespace, checkpoint_id: id } };
  }

  async putWrites(config: Config, given: Parameters<Saver["putWrites"]>[1], taskId: string, path = ""): Promise<void> {
    const { namespace, id = "" } = placeOf(config);
    const answers = this.#inputs.has(id) ? [] : answersIn(given.map(([, value]) => value));
    for (const [at, answer] of answers.entries()) this.#reader?.show(answer, taskId, `${taskId}-out-${at}`);
    const writes = await Promise.all(
      given.map(async ([channel, value], at): Promise<Write> => {
        const name = String(channel);
        return [taskId, indexOf(name, at), name, await this.typed(value), path];
      }),
    );
    const apply = (): void => this.#thread.write(namespace, id, writes);
    // An error ends the turn, and the failed node can run again.
    const isWaiting = writes.every(([, , channel]) => waiting.has(channel) || channel === "__error__");
    if (isWaiting) this.#deferred.push(apply);
    else await this.#feed.save(apply);
  }

  async deleteThread(): Promise<void> {
    throw new Error("A thread cannot be deleted alone; delete its task and its context");
  }

  async #tuple(config: Config, namespace: string, found: NonNullable<ReturnType<Thread["find"]>>): Promise<Tuple> {
    const at = (checkpoint_id: string): Config => ({
      configurable: { ...config.configurable, checkpoint_ns: namespace, checkpoint_id },
    });
    const { id, parent, checkpoint, metadata, writes } = found;
    const pendingWrites = writes.map(async ([taskId, , channel, value]): Promise<[string, string, unknown]> => [
      taskId,
      channel,
      await this.read(value),
    ]);
    return {
      config: at(id),
      checkpoint: (await this.read(checkpoint)) as Tuple["checkpoint"],
      metadata: (await this.read(metadata)) as NonNullable<Tuple["metadata"]>,
      pendingWrites: await Promise.all(pendingWrites),
      ...(parent !== undefined && { parentConfig: at(parent) }),
    };
  }
}

function placeOf({ configurable }: Config): { readonly namespace: string; readonly id: string | undefined } {
  const { checkpoint_ns: namespace, checkpoint_id: id } = configurable ?? {};
  return { namespace: String(namespace ?? ""), id: typeof id === "string" && id !== "" ? id : undefined };
}
