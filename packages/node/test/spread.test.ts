import { once } from "node:events";
import { connect, type AddressInfo, type Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { frontOf, Spread, type Taker } from "../src/processes/spread.ts";

/* Tests simulated connections, and processes that accept them. test/cluster/processes.test.ts has real connections and processes. */

interface Member extends Taker {
  readonly name: string;
}

/** Opens a port that distributes connections to its members. A member answers with its name, unless it is stopped. */
async function spreading(isStopped: (name: string) => boolean) {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const stuck: string[] = [];
  const members = new Map<string, Member>();
  const spread = new Spread<Member>({
    onStuck(member) {
      stuck.push(member.name);
      // Simulates that the server notices the end of the member's process.
      members.delete(member.name);
      spread.ended(member);
    },
  });
  for (const name of ["one", "two"]) {
    const member: Member = {
      name,
      send(_port, socket) {
        if (isStopped(name)) return;
        setImmediate(() => {
          socket.end(name);
          spread.taken(member);
        });
      },
    };
    members.set(name, member);
    spread.add(member);
  }
  const { server: front } = frontOf(0, spread);
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  onTestFinished(() => {
    spread.end();
    front.close();
  });
  const { port } = front.address() as AddressInfo;
  const ask = async (): Promise<string> => {
    const socket: Socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    let text = "";
    for await (const piece of socket.setEncoding("utf8")) text += String(piece);
    socket.destroy();
    return text;
  };
  return { ask, stuck };
}

test("a process that does not take its connection is reported after 30 s, and another one gets it", async () => {
  const { ask, stuck } = await spreading((name) => name === "one");
  const asked = [ask(), ask(), ask()];
  await Promise.any(asked);
  vi.advanceTimersByTime(29_000);
  expect(stuck).toEqual([]);
  vi.advanceTimersByTime(2_000);
  expect(await Promise.all(asked)).toEqual(["two", "two", "two"]);
  expect(stuck).toEqual(["one"]);
  expect(await ask()).toBe("two");
});

test("a process that takes each of its connections is not reported, however long the pauses are", async () => {
  const { ask, stuck } = await spreading(() => false);
  for (let times = 0; times < 3; times += 1) {
    expect(["one", "two"]).toContain(await ask());
    vi.advanceTimersByTime(60_000);
  }
  expect(stuck).toEqual([]);
});
