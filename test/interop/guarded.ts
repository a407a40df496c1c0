import { apiKeyCredential, bearerToken } from "@parley/a2a/credentials";
import { connect } from "@parley/node";
import { expect, it } from "vitest";
import type { BindingName, Version } from "./steps.ts";

/** Our client with a guarded server on another SDK, whose card requires both a token and an API key (A2A 1.0 §4.5.1, §7.3). */

const token = bearerToken("token-of-a-peer");
const key = apiKeyCredential("key-of-a-peer");

/**
 * Tests of one guarded server.
 *
 * @param start - Starts it, and returns its URL.
 * @param speaks - The bindings of each version.
 * @param word - A text that its agent answers with a message.
 */
export function itAuthenticates(
  start: () => Promise<string>,
  speaks: Readonly<Partial<Record<Version, readonly BindingName[]>>>,
  { word, reply }: { readonly word: string; readonly reply: string },
): void {
  const interfaces = Object.entries(speaks).flatMap(([version, bindings]) =>
    bindings.map((binding) => [version, binding] as const),
  );
  it.each(interfaces)(
    "version %s over %s: sends exactly the credentials that the card requires",
    async (version, binding) => {
      const url = await start();
      const { card } = await connect(url);
      // Its gRPC has a separate port, which only the card declares.
      const credentialOrigins = card.supportedInterfaces.map((one) =>
        one.url.includes("://") ? one.url : `http://${one.url}`,
      );
      const choice = { version, binding, credentialOrigins };
      const client = await connect(url, { ...choice, credentials: [key, token] });
      expect((await client.sendMessage(word)).message?.parts[0]?.text).toBe(reply);
      for await (const { message } of client.sendStreamingMessage(word)) expect(message?.parts[0]?.text).toBe(reply);
      // The extended card replaces the card (A2A 1.0 §3.1.11). Go's card omits the schemes in 0.3.
      expect(await client.getExtendedAgentCard()).toBe(client.card);
      expect((await client.sendMessage(word)).message?.parts[0]?.text).toBe(reply);
      for (const credentials of [[token], [key], [key, bearerToken("another")]]) {
        const stranger = await connect(url, { ...choice, credentials });
        await expect(stranger.sendMessage(word)).rejects.toMatchObject({ code: "Unauthenticated" });
      }
    },
  );
}
