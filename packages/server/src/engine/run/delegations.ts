import type { Message } from "@parley/a2a/internal/model/index";
import type { AgentMessage, ClosedDelegation, Delegations, OpenDelegation } from "@parley/a2a/internal/protocol/index";
import { delegatedFeature, deleteRow, delegationFeature, type FeatureEffect } from "../../store/index.ts";
import type { KeepingTurn } from "./phase.ts";
import { messageOf } from "./turn-input.ts";
import { storedJson, type StoredJson } from "@parley/a2a/internal/base/json";
import { sha256, toHex } from "@parley/a2a/internal/base/bytes";

const openJson = storedJson<OpenDelegation>();
const closedJson = storedJson<ClosedDelegation>();

/** The stored delegations of a task, read once per turn, because only this run changes them. */
export async function openDelegations(run: KeepingTurn): Promise<Delegations> {
  const { settings, task } = run;
  // A message without a task has no rows.
  const isStored = run.phase().fence !== undefined;
  const rowsOf = async <Row>(feature: string, json: StoredJson<Row>): Promise<Map<string, Row>> => {
    const rows = isStored ? await settings.store.features(task, task.taskId, feature) : [];
    return new Map(rows.map(({ key, value }) => [key, json.read(value)]));
  };
  const open = await rowsOf(delegationFeature, openJson);
  const closed = await rowsOf(delegatedFeature, closedJson);
  return new TurnDelegations(run, open, closed);
}

/** After a wait of this length, in milliseconds, the previous crash no longer counts for the run. */
const quietAfter = 1000;

class TurnDelegations implements Delegations {
  readonly open: Map<string, OpenDelegation>;
  readonly closed: Map<string, ClosedDelegation>;
  readonly authorizations = new Map<string, AgentMessage | undefined>();
  readonly running = new Set<string>();
  readonly had = new Set<string>();
  identified: Promise<unknown> = Promise.resolve();
  readonly #run: KeepingTurn;
  #waiting = 0;
  /** Ends the timer of `quietAfter`. */
  #quiet: () => void = () => {};

  constructor(run: KeepingTurn, open: Map<string, OpenDelegation>, closed: Map<string, ClosedDelegation>) {
    this.#run = run;
    this.open = open;
    this.closed = closed;
  }

  get asking(): boolean {
    const { suspends, waits } = this.#run.phase();
    return suspends || waits !== undefined;
  }

  get now(): number {
    return Math.floor(this.#run.settings.clock.now());
  }

  get answer(): number | undefined {
    const { input } = this.#run;
    return input.resumes === undefined ? undefined : input.input;
  }

  async message(seq: number): Promise<Message | undefined> {
    const { settings, task } = this.#run;
    const page = await settings.store.read(task, task.taskId, { after: seq - 1, limit: 1 });
    const record = page?.records[0];
    return record && messageOf(record);
  }

  store(key: string, row: OpenDelegation): Promise<void> {
    this.open.set(key, row);
    return this.#keep([{ effect: "feature", op: "set", feature: delegationFeature, key, value: openJson.write(row) }]);
  }

  async keepAnswer(): Promise<void> {
    const { answer } = this;
    if (answer === undefined) return;
    const unsent = [...this.open].filter(([, row]) => row.asked === true && row.unsentAnswer === undefined);
    await Promise.all(unsent.map(([key, row]) => this.store(key, { ...row, unsentAnswer: answer })));
  }

  close(key: string, row: ClosedDelegation): Promise<void> {
    this.open.delete(key);
    this.closed.set(key, row);
    return this.#keep([
      deleteRow(delegationFeature, key),
      { effect: "feature", op: "set", feature: delegatedFeature, key, value: closedJson.write(row) },
    ]);
  }

  onCancel(cancel: () => void): void {
    this.#run.onCancel(cancel);
  }

  async nameOf(...parts: readonly string[]): Promise<string> {
    const { agent, owner } = this.#run.task;
    const digest = await sha256(JSON.stringify(["parley delegation 1", agent, owner, ...parts]));
    return toHex(digest.subarray(0, 16));
  }

  wait(): () => void {
    const { phase, settings } = this.#run;
    this.#waiting += 1;
    if (this.#waiting === 1) {
      phase().rest(true, false);
      // The first events of the delegation might crash the process, so it counts as a wait only after a quiet period.
      this.#quiet = settings.clock.after(quietAfter, () => phase().rest(true, true));
    }
    let waits = true;
    return () => {
      if (!waits) return;
      waits = false;
      this.#waiting -= 1;
      if (this.#waiting > 0) return;
      this.#quiet();
      phase().rest(false, false);
    };
  }

  #keep(effects: readonly FeatureEffect[]): Promise<void> {
    const { phase } = this.#run;
    phase().makeTask();
    return phase().keep(effects);
  }
}
