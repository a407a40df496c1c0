import { defineAgent, memoryStore, serve } from "@parley/node";
import { connect } from "@parley/a2a";
import {
  makePassportKey,
  passportKeys,
  passportKeySet,
  securePassport,
  type CallerOptions,
} from "@parley/extensions/secure-passport";
import { describe, expect, it, onTestFinished } from "vitest";
import { describePeer, runClient, startServer, type PeerProgram } from "./peer.ts";

/*
 * Secure Passport with a Python peer that reads and writes passports like the public sample (a2aproject/a2a-samples,
 * extensions/secure-passport): the same four members, in the same place. It verifies and makes our signatures with another library, based
 * on the README alone.
 */

const python: PeerProgram = { name: "Python SDK 1.3.0", environment: "python1", program: "passport_v1.py" };

const key = await makePassportKey();
const theirs = "a2a://orchestrator.com";
const context = { clientId: theirs, sessionId: "session-123", state: { currency: "USD", tier: "silver" } };

describePeer(python, () => {
  describe("calls our agent", () => {
    it("which reads its passports: unsigned, signed like the sample, signed like ours, and malformed", async () => {
      const trust = passportKeys({ [theirs]: await passportKeySet([key]) });
      const passport = securePassport({ trust });
      const agent = defineAgent({
        name: "Parley passports",
        description: "Reads passports",
        version: "1.0.0",
        skills: [],
        extensions: [passport],
        onMessage: (turn) => turn.reply(JSON.stringify(turn.ext(passport) ?? null)),
      });
      const server = await serve(agent, { port: 0, store: memoryStore(), signals: false, logger: false });
      onTestFinished(() => server.close({ grace: 0 }));
      const steps = await runClient(python, ["call", server.url, JSON.stringify(key)]);
      const { result, text } = steps.get("passports") ?? {};
      expect(text).toBeUndefined();
      const not = (problem: string) => ({ ...context, verified: false, problem });
      expect(result).toEqual({
        none: null,
        plain: not("unsigned"),
        fake: not("unreadable"),
        real: { ...context, verified: true },
        again: not("replayed"),
        changed: { ...not("invalid"), state: { tier: "gold" } },
        elsewhere: not("audience"),
        extra: null,
        nameless: null,
      });
    });
  });

  describe("is called by our client", () => {
    const heardOf = async (caller: Omit<CallerOptions, "clientId">): Promise<unknown> => {
      const server = await startServer(python, ["serve", JSON.stringify(key)]);
      try {
        const client = await connect(server.url, {
          extensions: [securePassport({ caller: { clientId: theirs, ...caller } })],
        });
        return JSON.parse((await client.sendMessage("hi")).message?.parts[0]?.text ?? "");
      } finally {
        await server.stop();
      }
    };

    it("whose passport it reads and verifies, with only the members that it understands", async () => {
      const state = { currency: "USD", tier: "silver", phone: "none of its business" };
      expect(await heardOf({ key, sessionId: "session-123", state })).toEqual({
        ...context,
        signed: true,
        verified: true,
        asked: true,
      });
    });

    it("whose passport it reads without a signature", async () => {
      expect(await heardOf({ state: { tier: "Zürich" } })).toEqual({
        clientId: theirs,
        sessionId: null,
        state: { tier: "Zürich" },
        signed: false,
        verified: false,
        asked: true,
      });
    });

    it("and receives no passport if the message has none", async () => {
      expect(await heardOf({ state: () => undefined })).toBeNull();
    });
  });
});
