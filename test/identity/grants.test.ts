import { createConnection, type Socket } from "node:net";
import { connect, defineAgent, loopbackRedirect, nodeDialer } from "@parley/node";
import { jwt, mutualTls, oauth2 } from "@parley/a2a/auth";
import { connect as connectAnywhere } from "@parley/a2a";
import {
  authorizationCode,
  clientCredentials,
  deviceCode,
  memoryTokenStore,
  tokenExchange,
  type CredentialProvider,
  type DevicePrompt,
} from "@parley/a2a/credentials";
import { fakeClock } from "@parley/testing";
import { decodeJwt } from "jose";
import { describe, expect, it, onTestFinished } from "vitest";
import { certificateFor } from "../../packages/node/test/support/certificate.ts";
import { answerOf, approveDevice, bindings, serving, started } from "./credentials.ts";
import { browse, userToken } from "./logins.ts";
import { providerSecret } from "./provider-clients.ts";
import { startProvider } from "./provider.ts";

/** The grants that need another party besides the client and its provider: a device, a browser, a certificate, or a caller to act for. */

const scopes = { chat: "Talk to the agent" };

/** A clock that counts the pending pauses between two polls. */
function watchedClock() {
  const clock = fakeClock();
  const watched = {
    ...clock,
    pauses: 0,
    after(ms: number, run: () => void) {
      if (ms !== 5_000) return clock.after(ms, run);
      watched.pauses += 1;
      let over = false;
      const end = (): void => {
        watched.pauses -= over ? 0 : 1;
        over = true;
      };
      const stop = clock.after(ms, () => {
        end();
        run();
      });
      return () => {
        end();
        stop();
      };
    },
  };
  return watched;
}

describe("deviceCode() (RFC 8628)", () => {
  const flowsOf = (issuer: string) => ({
    deviceCode: { deviceAuthorizationUrl: `${issuer}/device/auth`, tokenUrl: `${issuer}/token`, scopes },
  });

  it("waits until the user has logged in on another device", async () => {
    const { issuer, requests } = await started();
    const { url } = await serving(oauth2({ issuer, scopes: ["chat"], flows: flowsOf(issuer) }));
    const clock = watchedClock();
    const prompts: DevicePrompt[] = [];
    const credential = deviceCode({ clientId: "native", issuer, clock, prompt: (one) => void prompts.push(one) });
    const client = await connect(url, { credentials: [credential] });
    const answer = client.sendMessage("Who am I?");
    await expect.poll(() => prompts.length).toBe(1);
    // The first poll is too early: the user has not logged in.
    await expect.poll(() => clock.pauses).toBe(1);
    clock.advance(5_000);
    await expect.poll(() => requests.get("/token")).toBe(1);
    expect(prompts).toMatchObject([{ verificationUri: `${issuer}/device`, userCode: expect.any(String) as string }]);
    expect(await approveDevice(prompts[0]?.verificationUriComplete ?? "")).toContain("You are signed in.");
    await expect.poll(() => clock.pauses).toBe(1);
    clock.advance(5_000);
    expect(answerOf(await answer)).toBe("ada chat");
  });

  it("ends when the call is aborted, and when the code has expired", async () => {
    const { issuer } = await started();
    const { url } = await serving(oauth2({ issuer, scopes: ["chat"], flows: flowsOf(issuer) }));
    const clock = watchedClock();
    const prompts: DevicePrompt[] = [];
    const credential = deviceCode({ clientId: "native", issuer, clock, prompt: (one) => void prompts.push(one) });
    const client = await connect(url, { credentials: [credential] });
    const leaving = new AbortController();
    const left = client.sendMessage("Who am I?", { signal: leaving.signal });
    await expect.poll(() => prompts.length).toBe(1);
    leaving.abort();
    await expect(left).rejects.toMatchObject({ code: "Aborted" });
    await expect.poll(() => clock.pauses).toBe(0);
    const late = client.sendMessage("Who am I?");
    await expect.poll(() => prompts.length).toBe(2);
    await expect.poll(() => clock.pauses).toBe(1);
    clock.advance(700_000);
    await expect(late).rejects.toMatchObject({ code: "Unauthenticated" });
  });
});

describe("loopbackRedirect() (RFC 8252 §7.3)", () => {
  it("logs a user in by a browser that is redirected to a port of this machine", async () => {
    const { issuer } = await started();
    const { url } = await serving(jwt({ issuer }));
    let page = "";
    const redirect = loopbackRedirect({
      async open(target) {
        const end = new URL(target).searchParams.get("redirect_uri") ?? "";
        const back = await browse(target, end);
        // Another process on this machine calls first: without the state, with a wrong state, and with another path.
        for (const path of ["/callback?code=stolen", "/callback?code=stolen&state=guess", "/other"]) {
          expect((await fetch(new URL(path, end))).status).toBe(404);
        }
        const response = await fetch(back);
        expect(response.headers.get("content-security-policy")).toBe("default-src 'none'; frame-ancestors 'none'");
        page = await response.text();
        await expect(fetch(new URL("/callback", end), { method: "POST" })).resolves.toMatchObject({ status: 404 });
      },
    });
    const client = await connect(url, {
      credentials: [authorizationCode({ issuer, clientId: "native", scopes: ["chat"], redirect })],
    });
    expect(answerOf(await client.sendMessage("Who am I?"))).toBe("ada chat");
    expect(page).toContain("You can close this page");
  });

  it("ends although another process on this machine holds connections open, as browsers do in advance", async () => {
    const { issuer } = await started();
    const { url } = await serving(jwt({ issuer }));
    const held: Socket[] = [];
    const redirect = loopbackRedirect({
      async open(target) {
        const end = new URL(target).searchParams.get("redirect_uri") ?? "";
        for (const begun of ["", "GET /callback HTTP/1.1\r\n"]) {
          const socket = createConnection(Number(new URL(end).port), "127.0.0.1").on("error", () => undefined);
          held.push(socket);
          await new Promise((resolve) => socket.once("connect", resolve));
          socket.write(begun);
        }
        await fetch(await browse(target, end));
      },
    });
    const credentials = [authorizationCode({ issuer, clientId: "native", scopes: ["chat"], redirect })];
    const client = await connect(url, { credentials });
    expect(answerOf(await client.sendMessage("Who am I?"))).toBe("ada chat");
    await expect.poll(() => held.every(({ closed }) => closed)).toBe(true);
  });

  it("stops after its timeout, when the call is aborted, and if no browser can be opened", async () => {
    const { issuer } = await started();
    const { url } = await serving(jwt({ issuer }));
    const with_ = (redirect: ReturnType<typeof loopbackRedirect>): readonly CredentialProvider[] => [
      authorizationCode({ issuer, clientId: "native", redirect }),
    ];
    const patient = await connect(url, { credentials: with_(loopbackRedirect({ open: () => undefined, timeout: 1 })) });
    await expect(patient.sendMessage("Hi")).rejects.toThrow(/Login timed out/);
    const leaving = new AbortController();
    const open = () => leaving.abort();
    const left = await connect(url, { credentials: with_(loopbackRedirect({ open })) });
    await expect(left.sendMessage("Hi", { signal: leaving.signal })).rejects.toMatchObject({ code: "Aborted" });
    const broken = await connect(url, {
      credentials: with_(loopbackRedirect({ open: () => Promise.reject(new Error("no display")) })),
    });
    await expect(broken.sendMessage("Hi")).rejects.toThrow(/no display/);
  });
});

describe("tokenExchange() (RFC 8693)", () => {
  it("calls another agent for the caller with its own token, which identifies the caller without the caller's token", async () => {
    const { issuer } = await started();
    const seen: string[] = [];
    const authenticator = jwt({ issuer, principal: (claims, usual) => ({ ...usual, claims }) });
    const weather = await serving(authenticator, {
      authorizer: ({ context }) => {
        seen.push(context.headers?.("authorization") ?? "");
        return "allow";
      },
    });
    const store = memoryTokenStore();
    const planner = defineAgent({
      name: "Planner",
      description: "Asks the weather agent on behalf of its caller",
      version: "1.0.0",
      skills: [],
      async onMessage(turn) {
        const subject = turn.principal;
        const options = { issuer, clientId: "exchanger", clientSecret: providerSecret, scopes: ["chat"], store };
        const client = await connect(weather.url, { credentials: [tokenExchange({ ...options, subject })] });
        return turn.reply(answerOf(await client.sendMessage("Who am I?")) ?? "");
      },
    });
    const { url } = await serving(authenticator, {}, planner);
    const own = (await userToken({ issuer }, { resource: url, scope: "chat", user: "grace" })).access_token;
    for (const binding of bindings) {
      const client = await connect(url, { binding, headers: { authorization: `Bearer ${own}` } });
      expect(answerOf(await client.sendMessage("What will it be like?"))).toBe("grace chat");
    }
    expect(seen.length).toBe(3);
    for (const header of seen) {
      expect(header).not.toContain(own);
      expect(decodeJwt(header.replace("Bearer ", ""))).toMatchObject({ aud: weather.url, act: { sub: "exchanger" } });
    }
  });

  it("rejects a call if the caller has shown no token", async () => {
    const { issuer } = await started();
    const { url } = await serving(jwt({ issuer }));
    const credential = tokenExchange({
      issuer,
      clientId: "exchanger",
      clientSecret: providerSecret,
      subject: { subject: "ada" },
    });
    const client = await connect(url, { credentials: [credential] });
    await expect(client.sendMessage("Hi")).rejects.toMatchObject({ code: "Unauthenticated" });
  });
});

describe("mutual TLS", () => {
  it("shows the certificate to the agent by every binding, and to no other origin (A2A 1.0 §4.5.6)", async () => {
    const [own, mine] = [await certificateFor("127.0.0.1"), await certificateFor("client.example.com")];
    const tls = { ...own, ca: [mine.cert], requestCert: true, rejectUnauthorized: false };
    const { url } = await serving(mutualTls(), { tls });
    for (const binding of bindings) {
      const client = await connect(url, { binding, tls: { ...mine, ca: own.cert } });
      expect(answerOf(await client.sendMessage("Who am I?"))).toBe("client.example.com");
      const stranger = await connect(url, { binding, tls: { ca: own.cert } });
      await expect(stranger.sendMessage("Who am I?")).rejects.toMatchObject({ code: "Unauthenticated" });
      // The card is passed directly, so no URL names the agent's origin, and `credentialOrigins` names another origin.
      const elsewhere = await connect(client.card, {
        binding,
        tls: { ...mine, ca: own.cert },
        credentialOrigins: ["https://other.example.com"],
      });
      await expect(elsewhere.sendMessage("Who am I?")).rejects.toMatchObject({ code: "Unauthenticated" });
    }
  });

  it("binds tokens to the certificate (RFC 8705 §3)", async () => {
    const [own, mine] = [await certificateFor("127.0.0.1"), await certificateFor("client.example.com")];
    const provider = await startProvider({ tls: own });
    onTestFinished(() => provider.close());
    const tls = { ...mine, ca: own.cert };
    const credential = clientCredentials({
      issuer: provider.issuer,
      clientId: "certified",
      clientSecret: providerSecret,
      scopes: ["chat"],
      dialer: nodeDialer({ tls }),
    });
    const keySet = { keys: provider.keys.map(({ d: _, ...open }) => open) };
    const { url } = await serving(jwt({ issuer: provider.issuer, keySet, bound: "certificate" }), {
      tls: { ...own, requestCert: true, rejectUnauthorized: false },
    });
    for (const binding of bindings) {
      const client = await connect(url, { binding, tls, credentials: [credential] });
      expect(answerOf(await client.sendMessage("Who am I?"))).toBe("certified chat");
    }
  });
});

describe("proofs at an agent that requires a nonce (RFC 9449 §9)", () => {
  it.each(bindings)("are sent again with it over %s", async (binding) => {
    const { issuer, requests } = await started();
    const { url } = await serving(jwt({ issuer, bound: "dpop", dpop: { nonce: true } }));
    const options = { issuer, clientId: "bound", clientSecret: providerSecret, dpop: true };
    const client = await connect(url, { binding, credentials: [clientCredentials(options)] });
    const answers = await Promise.all([1, 2, 3].map(() => client.sendMessage("Who am I?")));
    expect(answers.map(answerOf)).toEqual(["bound", "bound", "bound"]);
    expect(requests.get("/token")).toBe(1);
  });
});

it("a client without Node has the same credentials", async () => {
  const { issuer } = await started();
  const { url } = await serving(jwt({ issuer }));
  const credential = clientCredentials({ issuer, clientId: "service", clientSecret: providerSecret, scopes: ["chat"] });
  const client = await connectAnywhere(url, { credentials: [credential] });
  expect(answerOf(await client.sendMessage("Who am I?"))).toBe("service chat");
});
