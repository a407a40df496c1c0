import { describe, expect, it } from "vitest";
import { Receiving, type ReceivingPlace } from "@parley/server/internal/blobs/receive";
import type { BlobSettings } from "@parley/server/internal/blobs/port";
import type { A2AError } from "../../src/model/index.ts";
import { ByteBudget, type FileReceiver, type FileSender, type UniversalRequest } from "../../src/protocol/index.ts";
import { BodyPieces } from "../../src/transport/server/body-pieces.ts";
import { readLargeText } from "../../src/transport/server/large-body.ts";
import { Unfinished } from "../../src/transport/server/unfinished.ts";
import { StillClock } from "./support.ts";

/* Tests the memory for messages with large files while they arrive (`blobs`, docs/files.md). */

const kib = 1024;
const mib = 1024 * kib;
const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Creates a memory budget of 10 MiB for messages, and a function that receives a message within that budget. */
function room(): { clock: StillClock; receiving: (payer: string, bytes: number) => Promise<Receiving> } {
  const clock = new StillClock();
  const budget = new ByteBudget(10 * mib, clock);
  const settings = { messageBytes: 10 * mib, store: {} } as BlobSettings;
  const about: Omit<ReceivingPlace, "payer" | "bytes"> = {
    agent: "a",
    owner: "o",
    taskId: "t",
    signal: () => AbortSignal.any([]),
  };
  const receiving = (payer: string, bytes: number): Promise<Receiving> =>
    new Receiving(settings, budget, { ...about, payer, bytes }, clock).begin();
  return { clock, receiving };
}

describe("the memory of large messages", () => {
  it.each([
    ["sends nothing", true, 0, true],
    ["sends less than its room needs", true, 9 * kib, true],
    ["sends enough", true, 11 * kib, false],
    ["is not waited for", false, 0, false],
  ])("is taken from a sender that %s only if others wait for it", async (_what, isAwaited, eachSecond, isRefused) => {
    const { clock, receiving } = room();
    const refused: Error[] = [];
    const first = await receiving("one", 10 * mib);
    first.watch({ isAwaited, refuse: (error) => void refused.push(error) });
    const seconds = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at += 1) {
        await first.came(eachSecond);
        clock.advance(1000);
      }
    };
    await seconds(5);
    expect(refused).toEqual([]);
    const second = receiving("two", 5 * mib);
    second.catch(() => {});
    await seconds(4);
    expect(refused.map((error) => (error as A2AError).code)).toEqual(isRefused ? ["Unavailable"] : []);
    first.received();
    await (await second).close();
    expect(clock.timers).toBe(0);
  });
});

describe("a large body without a length", () => {
  /** Starts to read a body of which 300 KiB have arrived. Its files get no memory before `open` resolves. */
  function reading(unfinished: Unfinished, open: FileReceiver["open"]): Promise<string> {
    const piece = new Uint8Array(10 * kib).fill(0x20);
    const request = {
      read: (reader: BodyPieces) => {
        let count = 0;
        return { pause() {}, resume: () => void ((count += 1) <= 30 && reader.chunk(piece.slice())) };
      },
    } as unknown as UniversalRequest;
    const receiver: FileReceiver = { inlineBytes: kib, messageBytes: mib, bufferBytes: kib, open };
    const limits = { bodyBytes: 256 * kib, depth: 10, unfinished };
    return readLargeText({ request }, receiver, limits, { bytes: undefined } as FileSender, 256 * kib);
  }

  it("is counted while it waits for memory, and released as soon as others need its place", async () => {
    const clock = new StillClock();
    const unfinished = new Unfinished(mib, 256 * kib, clock);
    let closed = 0;
    const opened: ((files: never) => void)[] = [];
    const waits: Promise<string>[] = [];
    for (let at = 0; at < 3; at += 1) {
      waits.push(reading(unfinished, () => new Promise<never>((resolve) => void opened.push(resolve))));
      waits[at]?.catch(() => {});
      for (let turn = 0; turn < 50; turn += 1) await soon();
    }
    // Two bodies are in memory, and the third one pauses, because 640 KiB of the budget are for large bodies.
    expect(unfinished.large.used).toBe(2 * 256 * kib);
    for (let at = 0; at < 4; at += 1) clock.advance(1000);
    await expect(waits[0]).rejects.toMatchObject({ code: "Unavailable" });
    for (let turn = 0; turn < 50; turn += 1) await soon();
    // The budget now has space for the third body.
    expect([unfinished.large.used, opened.length]).toEqual([2 * 256 * kib, 3]);
    opened[0]?.({ close: () => Promise.resolve(void (closed += 1)) } as never);
    await soon();
    expect(closed).toBe(1);
  });

  it("is counted until it is read again, then takes the memory that it needs", async () => {
    const unfinished = new Unfinished(mib, 256 * kib, new StillClock());
    const source = new BodyPieces();
    source.place = unfinished.enter(source);
    await source.hold(200 * kib, 256 * kib);
    source.restart(new Uint8Array(200 * kib), new Uint8Array(10));
    const sizes: number[] = [];
    const held: number[] = [];
    for (let at = 0; at < 5; at += 1) {
      const piece = (await source.next()) as Uint8Array;
      // A piece does not keep the whole start of the body in memory.
      expect(piece.buffer.byteLength).toBeLessThanOrEqual(64 * kib);
      sizes.push(piece.length);
      await source.hold(kib, 70 * kib);
      held.push(unfinished.used);
    }
    expect(sizes).toEqual([64 * kib, 64 * kib, 64 * kib, 8 * kib, 10]);
    expect(held).toEqual([270 * kib, 270 * kib, 270 * kib, 70 * kib, 70 * kib]);
    source.close();
    expect(unfinished.used).toBe(0);
  });
});

describe("pieces that are in memory already", () => {
  it("are read in parts, so other work gets its turn", async () => {
    const source = new BodyPieces();
    source.from({ pause() {}, resume: () => source.chunk(new Uint8Array(4 * mib)) });
    let turns = 0;
    let isRead = false;
    const others = async (): Promise<void> => {
      for (; !isRead; turns += 1) await soon();
    };
    const other = others();
    let read = 0;
    while (read < 4 * mib) {
      const piece = (await source.next()) as Uint8Array;
      expect(piece.length).toBeLessThanOrEqual(64 * kib);
      read += piece.length;
    }
    isRead = true;
    await other;
    expect(turns).toBeGreaterThan(4);
  });
});
