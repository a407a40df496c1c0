import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { connect } from "@parley/a2a";
import { grpcBinding } from "@parley/grpc/client";
import { listenForWebhooks, type Listening } from "../webhook-listener.ts";
import { sdkAgent } from "./obedient-1.ts";

/* The official JavaScript SDK sends webhooks to our receiver, with either the token or Authorization. */

let listening: Listening;
beforeEach(() => {
  // The SDK logs every webhook to the console.
  for (const method of ["error", "info", "warn"] as const)
    vi.spyOn(console, method).mockImplementation(() => undefined);
});
afterEach(() => listening.close());

const all = ["1.0", "0.3"].flatMap((version) =>
  ["JSONRPC", "HTTP+JSON", "GRPC"].map((binding) => ({ binding, version })),
);

async function report(chosen: { readonly binding: string; readonly version: string }): Promise<void> {
  const { url } = await sdkAgent();
  const client = await connect(url, { ...chosen, bindings: [grpcBinding()] });
  const taskPushNotificationConfig = listening.receiver.config();
  await client.sendMessage({ message: "go", configuration: { taskPushNotificationConfig } });
  await expect.poll(() => listening.states()).toContain("TASK_STATE_COMPLETED");
}

describe.each(all)("the server of the official SDK 1.x, asked over $binding $version", (chosen) => {
  test("reports with the token, and each event is the received body", async () => {
    listening = await listenForWebhooks({ accept: { tokenOnly: true }, token: "s3cret" });
    await report(chosen);
    await expect.poll(() => listening.answers.length).toBe(listening.wire.length);
    expect(new Set(listening.answers)).toEqual(new Set([204]));
    for (const [at, { contentType, token, body }] of listening.wire.entries()) {
      expect(token).toBe("s3cret");
      const sent: unknown = JSON.parse(body);
      if (contentType === "application/a2a+json") expect(listening.events[at]).toMatchObject(sent as object);
      else expect(sent).toHaveProperty("kind");
    }
  });

  test("reports with Authorization alone, if the config asks for that", async () => {
    const authentication = { scheme: "Bearer", credentials: "abc" };
    listening = await listenForWebhooks({ accept: { tokenOnly: true, authentication }, token: "s3cret" });
    await report(chosen);
    expect(listening.wire[0]).toMatchObject({ authorization: "Bearer abc" });
  });
});
