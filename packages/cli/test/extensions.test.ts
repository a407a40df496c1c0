import { defineAgent } from "@parley/server";
import { defineExtension } from "@parley/a2a/extensions";
import { expect, onTestFinished, test } from "vitest";
import { parleyHere } from "./support/in-process.ts";
import { startServer } from "./support/server.ts";

test("--extension asks for an extension by its URI, any number of times (A2A 1.0 §3.2.6)", async () => {
  const one = defineExtension({ uri: "https://example.com/extensions/one/v1" });
  const two = defineExtension({ uri: "urn:example:two" });
  const agent = defineAgent({
    name: "Listing",
    description: "Says what is active",
    version: "1.0.0",
    skills: [],
    extensions: [one, two],
    onMessage: (turn) => turn.reply(`active: ${turn.extensions.join(" ")}.`),
  });
  const { url, close } = await startServer(agent);
  onTestFinished(() => close({ grace: 0 }));
  const none = await parleyHere(["send", url, "Hi"]);
  expect(none.out).toContain("active: .");
  const both = await parleyHere(["send", url, "Hi", "--extension", one.uri, "--extension", two.uri]);
  expect(both.out).toContain(`active: ${one.uri} ${two.uri}.`);
  const wrong = await parleyHere(["send", url, "Hi", "--extension", "urn:a,urn:b"]);
  expect([wrong.code, wrong.err]).toEqual([
    2,
    expect.stringContaining("--extension <uri> must not contain commas or spaces; got"),
  ]);
});
