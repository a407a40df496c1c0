import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { connect } from "@parley/a2a";
import { deferred } from "./support/host.ts";

const script = fileURLToPath(new URL("support/child.mjs", import.meta.url));
const children: ChildProcess[] = [];
afterEach(async () => {
  await Promise.all(
    children.splice(0).map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    }),
  );
});

interface ChildServer {
  readonly child: ChildProcess;
  readonly url: string;
  readonly ended: Promise<readonly [code: number | null, signal: NodeJS.Signals | null]>;
}

async function startChild(grace: number): Promise<ChildServer> {
  const child = spawn(process.execPath, [script, String(grace)], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const ended = new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.on("exit", (code, signal) => resolve([code, signal]));
  });
  const url = await new Promise<string>((resolve, reject) => {
    let text = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes("\n")) resolve(text.trim());
    });
    child.on("exit", () => reject(new Error("The server ended before it was ready")));
  });
  return { child, url, ended };
}

/** Starts a stream. Returns its events, and a promise for its end. */
async function stream(url: string, text: string): Promise<{ events: string[]; over: Promise<unknown> }> {
  const client = await connect(url, { reconnect: false });
  const events: string[] = [];
  const begun = deferred();
  const read = async (): Promise<void> => {
    for await (const event of client.sendStreamingMessage(text)) {
      const status = event.statusUpdate?.status ?? event.task?.status;
      if (status === undefined) continue;
      events.push(status.state);
      if (status.state === "TASK_STATE_WORKING") begun.resolve();
    }
  };
  const over = read().catch((error: unknown) => error);
  await Promise.race([begun.promise, over]);
  return { events, over };
}

describe("a server that gets a signal", () => {
  it("lets a turn with an open stream finish after SIGTERM, and then ends by the signal", async () => {
    const { child, url, ended } = await startChild(60_000);
    const { events, over } = await stream(url, "finish");
    child.kill("SIGTERM");
    expect(await over).toBeUndefined();
    expect(events.at(-1)).toBe("TASK_STATE_COMPLETED");
    expect(await ended).toEqual([null, "SIGTERM"]);
  });

  it("ends streams whose turns take longer than the grace after SIGINT", async () => {
    const { child, url, ended } = await startChild(50);
    const { events, over } = await stream(url, "continue");
    child.kill("SIGINT");
    await over;
    expect(events).not.toContain("TASK_STATE_COMPLETED");
    expect(await ended).toEqual([null, "SIGINT"]);
  });

  it("does not wait after a second signal", async () => {
    const { child, url, ended } = await startChild(3_600_000);
    await stream(url, "continue");
    child.kill("SIGTERM");
    // If the server has closed its port, it has received the first signal. Its turn continues.
    const isOpen = (): Promise<boolean> =>
      fetch(`${url}/readyz`).then(
        () => true,
        () => false,
      );
    await expect.poll(isOpen).toBe(false);
    expect(child.exitCode ?? child.signalCode).toBeNull();
    child.kill("SIGTERM");
    expect(await ended).toEqual([null, "SIGTERM"]);
  });
});
