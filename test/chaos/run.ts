import { createWriteStream, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { connect } from "@parley/a2a";
import { postgresStore } from "@parley/sql/postgres";
import { reservePort } from "../ports.ts";
import { startPostgres } from "../postgres/server.ts";
import { available } from "./available.ts";
import { startBalancer } from "./balancer.ts";
import { check, type Verdict } from "./check.ts";
import { Crowd } from "./clients.ts";
import { ClusterNode, nodeProgram } from "./cluster.ts";
import { Harms, pause } from "./harms.ts";
import type { Entry, TaskLog } from "./history.ts";
import type { Mutation } from "./mutations.ts";
import { plan } from "./plan.ts";
import { startServices } from "./services.ts";
import { Scraper } from "./metrics.ts";
import { standstill, writeCounts, writeMetrics } from "./standstill.ts";
import { leftAfter, logsOf, storedIn } from "./stored.ts";
import { startWitness } from "./witness.ts";

export interface ChaosOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly nodes: number;
  readonly conversations: number;
  /** The folder for the history, the nodes' log, and their journals. */
  readonly folder: string;
  /** The duration of a lease, in milliseconds. */
  readonly ttl: number;
  /** A fault of the store, which the checker must find. */
  readonly mutation?: Mutation;
  /** Called with messages about the progress. */
  readonly say: (line: string) => void;
}

export interface ChaosResult {
  readonly verdict: Verdict;
  readonly history: readonly Entry[];
  readonly logs: readonly TaskLog[];
}

/** The maximum time after the last fault in which no task ends although work remains, in milliseconds. */
const patience = 120_000;

/** The interval between two readings of a node's metrics, in milliseconds. */
const scrapeInterval = 2_000;

/** Runs a cluster, injects faults, and judges the history. */
export async function chaos(options: ChaosOptions): Promise<ChaosResult> {
  const { seed, say } = options;
  const length = options.minutes * 60_000;
  const records = new Records(options.folder);
  const { note } = records;
  const closing: (() => Promise<unknown>)[] = [() => records.close()];
  try {
    const cluster = await startCluster(options, records, closing);
    const witness = await startWitness(cluster.postgres.url, note);
    closing.push(witness);
    const crowd = new Crowd({ ...options, ...cluster, note });
    const running = crowd.run();
    const watched = cluster.nodes.map((node) => ({ node, scraper: new Scraper(node.port) }));
    const scraping = setInterval(() => watched.forEach(({ scraper }) => void scraper.scrape()), scrapeInterval);
    closing.push(() => Promise.resolve(clearInterval(scraping)));
    const progress = setInterval(() => say(`${crowd.begun} tasks begun, ${crowd.done} done`), 30_000);
    closing.push(() => Promise.resolve(clearInterval(progress)));
    const harms = new Harms({ ...cluster, note });
    await harms.run(plan({ seed, length, nodes: options.nodes }), length);
    crowd.end();
    await harms.repair();
    cluster.calm();
    say("No more faults: every task has to end now");
    if (!(await isOver(running, crowd)))
      note({ type: "trouble", at: Date.now(), what: `${crowd.unfinished.join(", ")} did not come to an end` });
    clearInterval(scraping);
    await standstill({ watched, crowd, note, patience }).catch((thrown: unknown) =>
      note({ type: "trouble", at: Date.now(), what: `Operators: ${String(thrown)}` }),
    );
    const store = await available(() => postgresStore({ database: cluster.postgres.url, wakeup: false }));
    for (const what of await leftAfter(store, patience))
      note({ type: "trouble", at: Date.now(), what: `The store did not come to rest: ${what}` });
    await writeCounts(watched, [], note);
    await writeMetrics(watched, note);
    const logs = await logsOf(store);
    await store.close();
    await Promise.all(cluster.nodes.map((node) => node.end("SIGTERM")));
    const history = [...records.all, ...cluster.journals.flatMap(storedIn)].toSorted((one, other) => one.at - other.at);
    return { verdict: check(history, logs, { orders: crowd.orders, promptWithin: 1_000 }), history, logs };
  } finally {
    for (const close of closing.reverse()) await close().catch(() => {});
  }
}

/** Waits for the conversations. Resolves to `false` if none made progress for too long. A busy machine finishes conversations one at a time. */
async function isOver(running: Promise<void>, crowd: Pick<Crowd, "done">): Promise<boolean> {
  let over = false;
  const ending = running.then(() => (over = true));
  let [done, since] = [crowd.done, performance.now()];
  while (!over && performance.now() - since < patience) {
    await Promise.race([ending, pause(1_000)]);
    if (crowd.done > done) [done, since] = [crowd.done, performance.now()];
  }
  return over;
}

/** The history of a run, in memory and in a file, and the nodes' log. */
class Records {
  readonly all: Entry[] = [];
  readonly folder: string;
  readonly #history;
  readonly #log;

  constructor(folder: string) {
    mkdirSync(folder, { recursive: true });
    this.folder = folder;
    this.#history = createWriteStream(join(folder, "history.jsonl"));
    this.#log = createWriteStream(join(folder, "nodes.log"));
  }

  readonly note = (entry: Entry): void => {
    this.all.push(entry);
    this.#history.write(`${JSON.stringify(entry)}\n`);
  };

  /** Logs a line that a node has printed. */
  readonly log = (line: string): void => void this.#log.write(`${new Date().toISOString()} ${line}\n`);

  async close(): Promise<void> {
    await Promise.all([this.#history, this.#log].map((file) => new Promise<void>((resolve) => file.end(resolve))));
  }
}

async function startCluster(options: ChaosOptions, records: Records, closing: (() => Promise<unknown>)[]) {
  const { seed, folder, say, ttl, mutation } = options;
  const opened = async <T>(opening: Promise<T>, close: (opened: T) => Promise<unknown>): Promise<T> => {
    const one = await opening;
    closing.push(() => close(one));
    return one;
  };
  const postgres = await opened(startPostgres(), (server) => server.remove());
  say(`PostgreSQL of ${postgres.source}`);
  const services = await opened(startServices(seed, records.note), (all) => all.close());
  const ports = await Promise.all(Array.from({ length: options.nodes }, () => reservePort()));
  const toNodes = await opened(startBalancer(ports), (balancer) => balancer.close());

  const toDatabase = await Promise.all(
    ports.map(() => opened(startBalancer([postgres.port]), (balancer) => balancer.close())),
  );
  const databaseOf = (node: number): string => {
    const database = new URL(postgres.url);
    database.port = String(toDatabase[node]?.port);
    return database.href;
  };
  const origin = `http://127.0.0.1:${toNodes.port}`;
  const journals = ports.map((_, at) => join(folder, `node-${at}.jsonl`));
  const listener = {
    onLine: records.log,
    onEnd: (what: string) => records.note({ type: "trouble", at: Date.now(), what }),
  };
  const script = await nodeProgram();
  const nodes = ports.map((port, at) => {
    const journal = journals[at] ?? "";
    rmSync(journal, { force: true });
    const shared = { publicUrl: origin, database: databaseOf(at), service: services.service, ttl };
    return new ClusterNode(
      script,
      at,
      { port, journal, ...shared, ...(mutation !== undefined && { mutation }) },
      listener,
    );
  });
  closing.push(() => Promise.all(nodes.map((node) => node.end("SIGKILL"))));
  await Promise.all(nodes.map((node) => node.start()));
  const cardOf = async (agent: string) => (await connect(`${origin}/${agent}`)).card;
  const cards = { resumable: await cardOf("resumable"), plain: await cardOf("plain") };
  return { postgres, toDatabase, toNodes, nodes, journals, origin, cards, hook: services.hook, calm: services.calm };
}
