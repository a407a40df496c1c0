import { line } from "../base/display.ts";
import { isLoopback } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import { pause } from "../transport/client/signals.ts";
import { checkTls } from "./authorization-server.ts";
import { parametersOf } from "./grants.ts";
import type { OAuthOptions, CredentialProvider } from "./port.ts";
import {
  partiesOf,
  errorCodeOf,
  requestOptions,
  requestTokens,
  type GrantCall,
  type LoggedInUser,
} from "./server-calls.ts";
import { TokenProvider } from "./token-provider.ts";

/** Receives the redirect of the user's browser after a login. Created by `loopbackRedirect()` of `@parley/node`. */
export interface LoginRedirect {
  /** Prepares one login. */
  begin(signal: AbortSignal): Promise<PendingLogin>;
}

/** A login in progress. */
export interface PendingLogin {
  /** The URL that the authorization server sends the browser back to. */
  readonly redirectUri: string;
  /**
   * Opens the page of the authorization server for the user. Resolves with the URL of the redirect, with its query. Ignores requests with
   * another `state` than `page`.
   */
  open(page: URL): Promise<URL>;
  /** Ends it. Called once, even after a failure. */
  close(): Promise<void>;
}

interface UserOptions extends OAuthOptions {
  /**
   * Called with the user who logged in. If set, the client requests the scopes `openid`, `profile` and `email` from an OpenID
   * provider, and logs in without them if the provider rejects them. Not called if the server does not name the user.
   */
  readonly onUser?: (user: LoggedInUser) => void;
}

/** A client for which a user logs in by a browser. */
export interface AuthorizationCodeOptions extends UserOptions {
  /** Opens the browser, and receives the redirect. */
  readonly redirect: LoginRedirect;
  /** The user name for the login page (`login_hint`). Default: none. */
  readonly loginHint?: string;
}

/**
 * Tokens of a user who logs in with a browser: OAuth 2.0 authorization code with PKCE (RFC 7636) and a check of the issuer (RFC 9207).
 * The user must log in when a call needs a token and none is stored. Refresh tokens renew the tokens.
 *
 * @example
 * ```ts
 * import { loopbackRedirect } from "@parley/node";
 *
 * const credentials = [authorizationCode({ clientId: "cli", redirect: loopbackRedirect() })];
 * const client = await connect("https://example.com/agent", { credentials });
 * ```
 */
export function authorizationCode(options: AuthorizationCodeOptions): CredentialProvider {
  const obtain = (call: GrantCall) => logIn(call, options);
  return new TokenProvider(options, {
    flows: ["authorizationCode"],
    interactive: true,
    obtain,
    onUser: options.onUser,
  });
}

async function logIn(call: GrantCall, { redirect, loginHint }: AuthorizationCodeOptions) {
  const { oauth, signal, resource } = call;
  const [server, client, authentication] = await partiesOf(call);
  const methods = call.server.metadata.code_challenge_methods_supported;
  if (methods !== undefined && !methods.includes("S256"))
    throw new A2AError("Unauthenticated", "The authorization server does not support PKCE with S256");
  const pending = await redirect.begin(signal);
  try {
    const verifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const { redirectUri } = pending;
    const asked = {
      ...parametersOf(call),
      client_id: client.client_id,
      response_type: "code",
      redirect_uri: redirectUri,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
      state,
      ...(loginHint !== undefined && { login_hint: loginHint }),
      // Without it, an OpenID provider issues no refresh token (OpenID Connect Core §11).
      ...(call.scopes.includes("offline_access") && { prompt: "consent" }),
      ...(call.key !== undefined && { dpop_jkt: await oauth.DPoP(client, call.key.pair).calculateThumbprint() }),
    };
    const back = await pending.open(await pageOf(call, asked));
    const answer = oauth.validateAuthResponse(server, client, withoutUnknownIssuer(call, back), state);
    const extra = resource === undefined ? {} : { additionalParameters: { resource } };
    return await requestTokens(
      call,
      (options) =>
        oauth.authorizationCodeGrantRequest(server, client, authentication, answer, redirectUri, verifier, {
          ...options,
          ...extra,
        }),
      (response) => oauth.processAuthorizationCodeResponse(server, client, response),
    );
  } finally {
    await pending.close();
  }
}

/** The page to open. If the server requires pushed requests, the URL contains only a reference (RFC 9126). */
async function pageOf(call: GrantCall, asked: Readonly<Record<string, string>>): Promise<URL> {
  const { oauth } = call;
  const { authorization_endpoint: endpoint = "", require_pushed_authorization_requests: pushed } = call.server.metadata;
  if (!URL.canParse(endpoint)) throw new A2AError("Unauthenticated", "The authorization server has no login page");
  // The operating system opens the URL, so it must be a web page.
  checkTls(endpoint, isLoopback(new URL(call.server.metadata.issuer).hostname));
  const page = new URL(endpoint);
  if (pushed !== true) {
    for (const [name, value] of Object.entries(asked)) page.searchParams.set(name, value);
    return page;
  }
  const [server, client, authentication] = await partiesOf(call);
  const response = await oauth.pushedAuthorizationRequest(server, client, authentication, asked, requestOptions(call));
  const { request_uri: uri } = await oauth.processPushedAuthorizationResponse(server, client, response);
  page.searchParams.set("client_id", client.client_id);
  page.searchParams.set("request_uri", uri);
  // The redirect recognizes the answer by its state. The server uses the pushed state (RFC 9126 §4).
  page.searchParams.set("state", asked["state"] ?? "");
  return page;
}

/** Ignores the `iss` of an answer if the card names endpoints but no issuer, because there is no known issuer to compare it with (RFC 9207 §2.4). */
function withoutUnknownIssuer({ server }: GrantCall, back: URL): URL {
  if (server.identified) return back;
  const url = new URL(back);
  url.searchParams.delete("iss");
  return url;
}

/** The code and URL with which a user logs in on another device (RFC 8628 §3.2). */
export interface DevicePrompt {
  /** The page to open. */
  readonly verificationUri: string;
  /** The page with the code in its URL. Absent: the server does not provide it. */
  readonly verificationUriComplete?: string;
  /** The code to enter. */
  readonly userCode: string;
  /** How long the code is valid, in seconds. */
  readonly expiresIn: number;
}

/** A client for which a user logs in on another device. */
export interface DeviceCodeOptions extends UserOptions {
  /** Shows the user where to log in. */
  readonly prompt: (prompt: DevicePrompt) => void | Promise<void>;
}

/**
 * Tokens of a user who logs in on another device: the device code of OAuth 2.0 (RFC 8628), for programs without a browser.
 *
 * @example
 * ```ts
 * const credentials = [
 *   deviceCode({
 *     clientId: "cli",
 *     prompt: ({ verificationUri, userCode }) => console.log(`Open ${verificationUri} and enter ${userCode}`),
 *   }),
 * ];
 * ```
 */
export function deviceCode(options: DeviceCodeOptions): CredentialProvider {
  const obtain = (call: GrantCall) => logInElsewhere(call, options);
  return new TokenProvider(options, {
    flows: ["deviceCode"],
    interactive: true,
    obtain,
    onUser: options.onUser,
  });
}

async function logInElsewhere(call: GrantCall, { prompt }: DeviceCodeOptions) {
  const { oauth, clock, signal } = call;
  const [server, client, authentication] = await partiesOf(call);
  const started = await oauth.deviceAuthorizationRequest(
    server,
    client,
    authentication,
    parametersOf(call),
    requestOptions(call),
  );
  const device = await oauth.processDeviceAuthorizationResponse(server, client, started);
  await prompt(promptOf(call, device));
  const until = clock.elapsed() + device.expires_in * 1000;
  for (let interval = Math.min(Math.max(device.interval ?? 5, 1), 60); clock.elapsed() < until;) {
    await pause(clock, interval * 1000, signal);
    try {
      return await requestTokens(
        call,
        (options) => oauth.deviceCodeGrantRequest(server, client, authentication, device.device_code, options),
        (response) => oauth.processDeviceCodeResponse(server, client, response),
      );
    } catch (thrown) {
      const code = errorCodeOf(thrown);
      if (code === "slow_down") interval += 5;
      else if (code !== "authorization_pending") throw thrown;
    }
  }
  throw new A2AError("Unauthenticated", "The login code expired before it was used");
}

/** The prompt for the user, made safe to show, because its text comes from the server. */
function promptOf(
  call: GrantCall,
  device: { verification_uri: string; verification_uri_complete?: string; user_code: string; expires_in: number },
): DevicePrompt {
  const local = isLoopback(new URL(call.server.metadata.issuer).hostname);
  const page = (text: string): string => {
    if (!URL.canParse(text)) throw new A2AError("Unauthenticated", "The authorization server has no login page");
    checkTls(text, local);
    return line(new URL(text).href, 2_000);
  };
  const { verification_uri_complete: complete } = device;
  return {
    verificationUri: page(device.verification_uri),
    ...(complete !== undefined && { verificationUriComplete: page(complete) }),
    userCode: line(device.user_code, 100),
    expiresIn: device.expires_in,
  };
}
