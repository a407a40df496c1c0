import { StreamResponse } from "@a2a-js/sdk";
import { legacyPushNotificationToV1StreamResponse } from "@a2a-js/sdk/compat/v0_3";
import express from "express";
import { listening } from "./agent-js.ts";
import type { RunningReceiver, Said } from "./peer.ts";

/* The official JavaScript SDK reads webhooks, on Express as in its guide. It reports the same as other peers. */

const readers: Readonly<Record<"1.0" | "0.3", (body: unknown) => StreamResponse>> = {
  "1.0": (body) => StreamResponse.fromJSON(body),
  "0.3": legacyPushNotificationToV1StreamResponse,
};

export async function startJavaScriptReceiver(version: "1.0" | "0.3", token: string): Promise<RunningReceiver> {
  const heard: Said[] = [];
  const { app, url, stop } = await listening();
  // Both are in its guide; by default, Express reads only the first.
  app.use(express.text({ type: ["application/json", "application/a2a+json"] }));
  app.post("/hook", (request, response) => {
    if (request.header("X-A2A-Notification-Token") !== token) {
      heard.push({ step: "refused" });
      response.sendStatus(401);
      return;
    }
    const body = String(request.body);
    const read = StreamResponse.toJSON(readers[version](JSON.parse(body)));
    heard.push({ step: "webhook", result: { body, type: request.header("content-type"), read } });
    response.sendStatus(204);
  });
  return { url: `${url}/hook`, heard, stop };
}
