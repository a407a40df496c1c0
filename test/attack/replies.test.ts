import { describe, expect, it } from "vitest";
import { mebi, send } from "./harness/bodies.ts";
import { servers } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";

/* The server keeps direct replies with the messages that they answer, both for retries and for the conversation. */

describe.each(["SQLite", "memory"] as const)("on %s 60 messages of 9 MB with direct answers", (store) => {
  const attacked = servers(store);
  // The store keeps 32 MiB of a conversation in memory, and drops older messages.
  const allowance = { keeps: store === "memory" ? 33 * mebi : 0 };

  it("are remembered within their limits", async () => {
    const server = await attacked.start();
    await withstands(
      server,
      async (other) => {
        for (let sent = 0; sent < 60; sent++) {
          const { status, body } = await send(server.url, { words: "hello", file: 9 * mebi });
          expect({ status, reply: body.message?.parts[0]?.text }).toEqual({ status: 200, reply: "Hello" });
        }
        await other.answers(3);
      },
      allowance,
    );
  });
});
