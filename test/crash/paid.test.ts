import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { connect, type Client } from "@parley/a2a";
import {
  testFacilitator,
  testWallet,
  x402,
  x402Keys,
  type PaymentPayload,
  type PaymentRequiredResponse,
  type PaymentRequirements,
} from "@parley/extensions/x402";
import type { JsonObject, Message, Task } from "@parley/a2a/model";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { times } from "../counts.ts";
import { diskFolder } from "../temporary.ts";
import { reservePort, Supervisor, type Life } from "./supervisor.ts";

/** A real server on SQLite is killed between the verification and the settlement of a payment. Its facilitator survives, as a real one does. */

const facilitator = testFacilitator();
const { uri } = x402({ facilitator });
const wallet = testWallet();
/** Kills the server at a call to the facilitator, before or after the facilitator has acted. */
let kills: { readonly call: string; readonly moment: "before" | "after"; readonly life: Life } | undefined;

const facilitatorServer = createServer((request, response) => {
  void (async () => {
    const call = request.url ?? "";
    const body = (await json(request)) as { paymentPayload: PaymentPayload; paymentRequirements: PaymentRequirements };
    const { paymentPayload: payment, paymentRequirements: requirements } = body;
    const plan = kills?.call === call ? kills : undefined;
    if (plan !== undefined) kills = undefined;
    const dies = async (moment: "before" | "after"): Promise<void> => {
      if (plan?.moment !== moment) return;
      plan.life.kill("SIGKILL");
      await plan.life.end;
    };
    await dies("before");
    // A request of a killed process may or may not have arrived.
    if (plan?.moment === "before") return void response.destroy();
    const idempotencyKey = String(request.headers["idempotency-key"]);
    const answer =
      call === "/verify"
        ? await facilitator.verify({ payment, requirements })
        : await facilitator.settle({ payment, requirements, idempotencyKey });
    await dies("after");
    response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
  })();
});
await new Promise<void>((resolve) => facilitatorServer.listen(0, "127.0.0.1", resolve));
const facilitatorPort = (facilitatorServer.address() as { port: number }).port;

const folder = await mkdtemp(join(diskFolder(), "parley-paid-"));
const path = join(folder, "tasks.db");
await writeFile(`${path}.lives`, "0");
await writeFile(`${path}.effects`, "");
await writeFile(`${path}.facilitator`, `http://127.0.0.1:${facilitatorPort}`);
const script = fileURLToPath(new URL("paid-server.ts", import.meta.url));
const supervisor = new Supervisor(path, await reservePort(), script);
afterAll(async () => {
  supervisor.stop();
  facilitatorServer.close();
  await rm(folder, { recursive: true });
});

// Runs even if a test has failed, because the next one needs the port.
afterEach(() => supervisor.stop());

const clientOf = (): Promise<Client> =>
  connect(supervisor.url, { extensions: [uri], retry: false, reconnect: false, cardCache: false });

/** The message that pays for a task. */
async function paymentFor(task: Task, words: string): Promise<Message> {
  const required = task.status.message?.metadata?.[x402Keys.required] as unknown as PaymentRequiredResponse;
  const [requirements = expect.fail("no option")] = required.accepts;
  const payload = await wallet.sign({ requirements, x402Version: required.x402Version });
  return {
    messageId: `payment for ${task.id}`,
    role: "ROLE_USER",
    taskId: task.id,
    parts: [{ text: words }],
    metadata: { [x402Keys.status]: "payment-submitted", [x402Keys.payload]: payload as unknown as JsonObject },
  };
}

/** The moment at which the server is killed: in its work, or while it calls the facilitator. */
const moments = [
  { at: "after the work" },
  { at: "after the settlement", call: "/settle", moment: "after" },
  { at: "before the work" },
  { at: "after the picture" },
  { at: "before the settlement", call: "/settle", moment: "before" },
  { at: "after the verification", call: "/verify", moment: "after" },
] as const;

describe("a payment whose server is killed between verification and settlement", () => {
  test.each(moments.slice(0, times(2, 6)))("is settled once, and the work is done once: $at", async (at) => {
    const words = `a boat, killed ${at.at}`;
    const before = facilitator.settled.length;
    const keysBefore = facilitator.keys.length;
    const linesBefore = (await readFile(`${path}.effects`, "utf8")).length;
    const life = await supervisor.start();
    const sent = await (await clientOf()).sendMessage(words);
    const task = sent.task ?? expect.fail("no task");
    const message = await paymentFor(task, words);
    if ("call" in at) kills = { ...at, life };
    // The response is lost with the process.
    await (await clientOf()).sendMessage({ message }).catch(() => {});
    expect(await life.end).toBe("SIGKILL");

    const next = await supervisor.start();
    // A client repeats a call that got no response. The server deduplicates it.
    await (await clientOf()).sendMessage({ message });
    const client = await clientOf();
    await vi.waitFor(async () => expect((await client.getTask(task.id)).status.state).toBe("TASK_STATE_COMPLETED"), {
      timeout: 30_000,
      interval: 50,
    });
    const over = await client.getTask(task.id);
    expect(over.status.state).toBe("TASK_STATE_COMPLETED");
    const settled = facilitator.settled.slice(before);
    expect(settled).toHaveLength(1);
    expect(over.status.message?.metadata?.[x402Keys.receipts]).toEqual(settled);
    expect(new Set(facilitator.keys.slice(keysBefore)).size).toBe(1);
    expect(over.artifacts?.map(({ artifactId }) => artifactId)).toEqual(["picture"]);
    const lines = (await readFile(`${path}.effects`, "utf8")).slice(linesBefore).trimEnd().split("\n");
    expect(lines).toEqual([expect.stringContaining(`${words}: `)]);
    next.kill("SIGKILL");
    await next.end;
  });

  test("and the server logged no error", () => {
    expect(supervisor.complaints).toEqual([]);
  });
});
