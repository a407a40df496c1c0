import type { Wakeup } from "@parley/server/internal/store/wakeup";
import { declareCases, until, type Expect, type Runner } from "./runner.ts";

/** Wake-ups under test. */
export interface WakeupContractOptions {
  /** Opens a node of the cluster, which reaches all others. The case closes it. */
  readonly open: () => Promise<Wakeup>;
  /** Breaks the connections of all nodes, which reconnect automatically. Absent: there are no connections. */
  readonly disconnect?: () => Promise<void>;
}

interface Given {
  readonly open: () => Promise<Node>;
  readonly expect: Expect;
}

/** A node, and the task ids it received. */
interface Node {
  readonly wakeup: Wakeup;
  readonly told: (string | undefined)[];
}

/**
 * Tests every rule of the `Wakeup` port.
 *
 * ```ts
 * import { describe, it } from "node:test";
 * import { wakeupContract } from "@parley/testing";
 *
 * wakeupContract({ describe, it }, { open: () => myWakeup() });
 * ```
 */
export function wakeupContract(runner: Runner, options: WakeupContractOptions): void {
  const { disconnect } = options;
  const all = { ...cases, ...(disconnect !== undefined && reconnecting(disconnect)) };
  declareCases(runner, "wake-ups", all, (expect) => {
    const nodes: Wakeup[] = [];
    const open = async (): Promise<Node> => {
      const wakeup = await options.open();
      nodes.push(wakeup);
      const told: (string | undefined)[] = [];
      wakeup.subscribe((taskId) => told.push(taskId));
      await until("a node is connected", () => wakeup.isConnected);
      return { wakeup, told };
    };
    return { given: { open, expect }, close: () => Promise.all(nodes.map((node) => node.close())) };
  });
}

function reconnecting(disconnect: () => Promise<void>): typeof cases {
  return {
    "reconnect after a lost connection, and report that any task may have changed": async ({ open }) => {
      const [one, other] = [await open(), await open()];
      await disconnect();
      await until("both nodes report the loss", () => one.told.includes(undefined) && other.told.includes(undefined));
      await until("the nodes are connected", () => one.wakeup.isConnected && other.wakeup.isConnected);
      await arrives(one, other, "after");
      await arrives(other, one, "back");
    },
  };
}

const cases: Readonly<Record<string, (given: Given) => Promise<void>>> = {
  "reach every other node and each of its listeners": async ({ open, expect }) => {
    const [one, two, three] = [await open(), await open(), await open()];
    const more: (string | undefined)[] = [];
    two.wakeup.subscribe((taskId) => more.push(taskId));
    one.wakeup.publish(["a", "b"]);
    await until("every listener receives both ids", () =>
      [two.told, three.told, more].every((told) => told.includes("a") && told.includes("b")),
    );
    expect(more).toEqual(two.told);
  },

  "do not reach the node that published them": async ({ open, expect }) => {
    const [one, other] = [await open(), await open()];
    await arrives(one, other, "mine");
    // An echo would have arrived before the answer of the other node.
    await arrives(other, one, "yours");
    expect(one.told.includes("mine")).toEqual(false);
  },

  "report every task, even if thousands change at once": async ({ open, expect }) => {
    const [one, other] = [await open(), await open()];
    const ids = Array.from({ length: 5000 }, (_, at) => `task-${at}-${"x".repeat(24)}`);
    one.wakeup.publish(ids);
    await until("the other node receives all ids", () => covers(other.told, ids));
    // A further wake-up names its task.
    await until("the other node receives one more id", () => {
      one.wakeup.publish(["one more"]);
      return other.told.includes("one more");
    });
    expect(other.told.every((taskId) => taskId === undefined || ids.includes(taskId) || taskId === "one more")).toEqual(
      true,
    );
  },

  "report tasks with unusual ids": async ({ open }) => {
    const [one, other] = [await open(), await open()];
    for (const id of ["'; --", '"\\', "\u0000\n", "漢字🎉", "$1", "*", "x".repeat(20_000), "\ud800", " "]) {
      one.wakeup.publish([id]);
      await until(`${JSON.stringify(id.slice(0, 10))} arrives`, () => covers(other.told, [id]));
      other.told.length = 0;
    }
  },

  "are coalesced if a task changes often": async ({ open, expect }) => {
    const [one, other] = [await open(), await open()];
    for (let change = 0; change < 1000; change += 1) one.wakeup.publish(["busy"]);
    one.wakeup.publish(["last"]);
    await until("the other node receives the last id", () => covers(other.told, ["last"]));
    const times = other.told.filter((taskId) => taskId === "busy").length;
    expect(covers(other.told, ["busy"]) && times < 100).toEqual(true);
  },

  "stop when the subscription ends": async ({ open, expect }) => {
    const [one, other] = [await open(), await open()];
    const told: (string | undefined)[] = [];
    const listener = (taskId: string | undefined): void => void told.push(taskId);
    const [end, endSecond] = [other.wakeup.subscribe(listener), other.wakeup.subscribe(listener)];
    end();
    end();
    one.wakeup.publish(["first"]);
    await until("the remaining listeners receive the id", () => other.told.includes("first") && told.includes("first"));
    expect(told).toEqual(["first"]);
    endSecond();
    await arrives(one, other, "second");
    expect(told.includes("second")).toEqual(false);
  },

  "are sent before the node closes and not after": async ({ open, expect }) => {
    const [one, other] = [await open(), await open()];
    one.wakeup.publish(["begin"]);
    one.wakeup.publish(["end"]);
    await one.wakeup.close();
    one.wakeup.publish(["late"]);
    await one.wakeup.close();
    await until("the other node receives all published ids", () => covers(other.told, ["begin", "end"]));
    expect(one.wakeup.isConnected).toEqual(false);
    const third = await open();
    await arrives(third, other, "third");
    expect(other.told.includes("late")).toEqual(false);
  },
};

/** Publishes an id until the other node receives it, because a wake-up may be lost. */
async function arrives(from: Node, to: Node, taskId: string): Promise<void> {
  await until(`${taskId} arrives`, () => {
    from.wakeup.publish([taskId]);
    return to.told.includes(taskId);
  });
}

/** Whether a node received wake-ups for all of these tasks. */
function covers(told: readonly (string | undefined)[], ids: readonly string[]): boolean {
  if (told.includes(undefined)) return true;
  const known = new Set(told);
  return ids.every((id) => known.has(id));
}
