import { defineAgent, memoryStore, serve } from "@parley/node";
import { jwt } from "@parley/a2a/auth";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { answerText } from "./commands.ts";
import { control } from "./control.ts";

// Parley in memory, for callers with a JWT. It also issues the tokens (`token`).

const agent = defineAgent({
  name: "Benchmark",
  description: "Replies.",
  version: "1.0.0",
  skills: [],
  onMessage: (turn) => Promise.resolve(turn.reply(answerText)),
});
const issuer = "https://login.example.com";
const { publicKey, privateKey } = await generateKeyPair("ES256");
const keySet = { keys: [{ ...(await exportJWK(publicKey)), kid: "k1", alg: "ES256" }] };
const { url } = await serve(agent, {
  port: 0,
  store: memoryStore(),
  authenticator: jwt({ issuer, keySet, scopes: ["chat"] }),
});
control(
  { jsonRpc: url, rest: url },
  {
    // Has the typical length of a provider's tokens.
    token: () =>
      new SignJWT({ scope: "chat openid profile", client_id: "client-7f3a", jti: crypto.randomUUID(), org: "example" })
        .setProtectedHeader({ alg: "ES256", kid: "k1", typ: "at+jwt" })
        .setIssuer(issuer)
        .setAudience(url)
        .setSubject("5a1c7f3e-user")
        .setIssuedAt()
        .setExpirationTime("1h")
        .sign(privateKey),
  },
);
