import { html } from "@parley/a2a/internal/base/display";
import { A2AError, hasCode, isTerminal, type JsonValue } from "@parley/a2a/internal/model/index";
import {
  type BodyBudget,
  isOfOtherPage,
  type UniversalRequest,
  type UniversalResponse,
} from "@parley/a2a/internal/protocol/index";
import { audited, auditedContext, type InTaskParts } from "./port.ts";
import {
  type Answer,
  answered,
  findRequest,
  type FoundRequest,
  isJsonObject,
  isOpen,
  type Linked,
  maxCredentialBytes,
  problemOf,
  readToken,
  type StoredRequest,
} from "./row.ts";
import { sha256, toHex } from "@parley/a2a/internal/base/bytes";
import { valueJson } from "../store/json.ts";

/*
 * The callback is the only URL of a server for links, forms, other services and redirects of authorization servers. Every link that does not work
 * gets the same answer, which reveals nothing about tasks.
 */

/** A form or JSON, with room for the percent-encoding of a form. */
const maxBodyBytes = 3 * maxCredentialBytes + 16_384;

/** A working link, with its request. */
interface OpenLink extends Linked {
  readonly contextId: string;
  readonly found: FoundRequest;
}

/** Answers a request to the callback. `bodies`: the memory that all bodies share. */
export async function answerCallback(
  parts: InTaskParts,
  request: UniversalRequest,
  bodies?: BodyBudget,
): Promise<UniversalResponse> {
  const query = new URLSearchParams(request.url.slice(request.url.indexOf("?") + 1));
  if (request.method === "GET" || request.method === "HEAD") {
    return query.has("state") ? redirected(parts, request, query) : shown(parts, request, query.get("request"));
  }
  if (request.method === "POST") return posted(parts, request, query, bodies);
  return { status: 405, headers: { allow: "GET, HEAD, POST", "cache-control": "no-store" } };
}

/** Answers a person who opens the link. Does not change the request, because link scanners open links, too. */
async function shown(parts: InTaskParts, request: UniversalRequest, token: string | null): Promise<UniversalResponse> {
  const link = await openLink(parts, request, token);
  return link === undefined ? gonePage() : askingPage(link.found.request);
}

/** Handles the redirect back from an authorization server (RFC 6749 §4.1.2), in the browser that has seen the page of the link. */
async function redirected(
  parts: InTaskParts,
  request: UniversalRequest,
  query: URLSearchParams,
): Promise<UniversalResponse> {
  const token = query.get("state");
  const link = await openLink(parts, request, token);
  if (link?.found.request.form !== "oauth" || token === null) return gonePage();
  const { name, value } = await browserCookie(parts, token);
  if (!cookiesOf(request).includes(`${name}=${value}`)) return gonePage();
  const parameters = query.toString();
  if (parameters.length > maxCredentialBytes) return gonePage();
  const denied = query.get("error") === "access_denied";
  const stored = await store(parts, link, denied ? { kind: "denied" } : { kind: "redirect", parameters });
  return stored ? thanksPage(denied) : gonePage();
}

/** Handles a form from the page, or JSON from another service. */
async function posted(
  parts: InTaskParts,
  request: UniversalRequest,
  query: URLSearchParams,
  bodies: BodyBudget | undefined,
): Promise<UniversalResponse> {
  // Prevents CSRF: a page of another origin could answer in the browser of a person who has not seen the request. JSON after a preflight is no
  // exception, because the CORS option may allow the page to call agents.
  const isJson = (request.header("content-type") ?? "").startsWith("application/json");
  if (isOfOtherPage(request, parts.settings.url)) return isJson ? goneJson() : gonePage();
  const body = await request.text(maxBodyBytes, bodies).catch((thrown: unknown) => {
    // Without a hint to an option, because no option raises this limit.
    throw hasCode(thrown, "RequestTooLarge") ? new A2AError("RequestTooLarge") : thrown;
  });
  if (isJson) return postedJson(parts, request, query.get("request"), body);
  const form = new URLSearchParams(body);
  const link = await openLink(parts, request, form.get("request"));
  if (link === undefined) return gonePage();
  const decision = form.get("decision");
  if (decision === "continue" && link.found.request.target !== undefined) {
    return sentOn(parts, link.found.request.token, link.found.request.target);
  }
  const answer = answerOf(link.found, decision, form.get("secret"));
  if (answer === undefined) return invalidPage();
  return (await store(parts, link, answer)) ? thanksPage(answer.kind === "denied") : gonePage();
}

function answerOf(
  { request: { form } }: FoundRequest,
  decision: string | null,
  secret: string | null,
): Answer | undefined {
  if (decision === "deny") return { kind: "denied" };
  if (decision === "approve" && form === "approval") return { kind: "credential", value: true };
  const isSecret = decision === "give" && form === "secret" && secret !== null;
  if (!isSecret || problemOf("secret", secret) !== undefined) return undefined;
  return { kind: "credential", value: secret };
}

/** `{"credential": …}` or `{"denied": true}`. Tokens of an authorization server come only by redirect. */
async function postedJson(
  parts: InTaskParts,
  request: UniversalRequest,
  token: string | null,
  body: string,
): Promise<UniversalResponse> {
  const link = await openLink(parts, request, token);
  if (link === undefined) return goneJson();
  const { credential, denied } = readJson(body);
  const { form } = link.found.request;
  const isDenied = denied === true;
  const problem = isDenied ? undefined : problemOf(form, credential);
  if (problem !== undefined || (form === "oauth" && !isDenied)) {
    return json(400, { error: `credential ${problem ?? "is not accepted here"}` });
  }
  const answer: Answer =
    isDenied || credential === undefined ? { kind: "denied" } : { kind: "credential", value: credential };
  if (!(await store(parts, link, answer))) return goneJson();
  return json(200, { status: "received" });
}

/** Empty if the body is not a JSON object. */
function readJson(body: string): Partial<Readonly<Record<"credential" | "denied", JsonValue>>> {
  try {
    const value = valueJson.read(body);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** The answer to every JSON body whose link does not work. */
function goneJson(): UniversalResponse {
  return json(410, { error: "This link does not work" });
}

function json(status: number, value: JsonValue): UniversalResponse {
  const headers = { "content-type": "application/json", "cache-control": "no-store" };
  return { status, headers, body: JSON.stringify(value) };
}

/** Stores an answer. `false`: another answer was first. */
async function store(parts: InTaskParts, { task, contextId, found }: OpenLink, answer: Answer): Promise<boolean> {
  const { host, waits } = parts;
  const effects = [await answered(parts, task, found, answer)];
  const [outcome] = await host.store.append([{ task, records: [], effects }]);
  const stored = outcome?.ok === true;
  const refused = answer.kind === "denied" || !stored;
  audited(host, task, contextId, { action: "authorize.callback", outcome: refused ? "refused" : "success" });
  if (stored) waits.changed(task);
  return stored;
}

/** The request of a link of this server, if it is open and the sender may be its principal. */
async function openLink(
  parts: InTaskParts,
  request: UniversalRequest,
  token: string | null,
): Promise<OpenLink | undefined> {
  const { host, seal } = parts;
  const linked = await readToken(seal, token);
  if (linked === undefined) return undefined;
  const { task, id, nonce } = linked;
  const found = await findRequest(host.store, task, id);
  const works = found !== undefined && found.request.nonce === nonce && isOpen(found, host.clock.now());
  if (!works || !(await isOfPrincipal(parts, request, task.owner))) {
    const contextId = await auditedContext(host, task);
    audited(host, task, contextId, { action: "authorize.callback", outcome: "refused" });
    return undefined;
  }
  const head = await host.store.head(task, task.taskId);
  return head === undefined || isTerminal(head.state) ? undefined : { ...linked, contextId: head.contextId, found };
}

/** Whether the sender may be the principal of the task: false only if the sender is known to be another user. */
async function isOfPrincipal(
  { settings, host }: InTaskParts,
  request: UniversalRequest,
  owner: string,
): Promise<boolean> {
  try {
    const caller = await settings.caller(request);
    if (caller !== undefined && host.ownerOf(caller) !== owner) return false;
    if (settings.identify === undefined) return true;
    const principal = await settings.identify(request);
    return principal !== undefined && host.ownerOf(principal) === owner;
  } catch (cause) {
    if (hasCode(cause, "TooManyRequests")) throw cause;
    host.logger.debug("Failed to identify the sender of a link", { cause });
    return false;
  }
}

/** Sends a browser to the authorization server, with a cookie that identifies it when it returns. */
async function sentOn(parts: InTaskParts, token: string, target: string): Promise<UniversalResponse> {
  const { name, value, attributes } = await browserCookie(parts, token);
  return {
    status: 303,
    headers: {
      location: target,
      "set-cookie": `${name}=${value}; ${attributes}`,
      "cache-control": "no-store",
      "referrer-policy": "same-origin",
    },
  };
}

/** The cookie of a browser that has seen the page. Redirects in another browser are rejected, so a forwarded authorization URL is useless. */
async function browserCookie({ settings }: InTaskParts, token: string) {
  const hex = toHex(await sha256(token));
  const secure = settings.url.startsWith("https:");
  return {
    name: `${secure ? "__Host-" : ""}parley-${hex.slice(0, 16)}`,
    value: hex.slice(16),
    attributes: `Path=/; Max-Age=3600; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`,
  };
}

function cookiesOf(request: UniversalRequest): readonly string[] {
  return (request.header("cookie") ?? "").split(/[;,]/).map((cookie) => cookie.trim());
}

/* The pages of a link, without scripts and external resources. */

const style =
  "body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem;color:#222;background:#fff}" +
  "blockquote{margin:1rem 0;padding:.5rem 1rem;border-left:.25rem solid #888;white-space:pre-wrap;overflow-wrap:anywhere}" +
  "button,input{font:inherit;padding:.4rem .9rem;margin:.3rem .3rem .3rem 0}input{width:100%;box-sizing:border-box}" +
  "@media(prefers-color-scheme:dark){body{color:#eee;background:#181818}}";

/** A page that may not be cached, framed, or leak its address. */
function page(status: number, title: string, content: string): UniversalResponse {
  return {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy":
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
      "referrer-policy": "same-origin",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
    },
    body:
      `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
      `<title>${html(title)}</title><style>${style}</style><h1>${html(title)}</h1>${content}</html>`,
  };
}

/** The page of an open request: the request, its agent and principal, and how to answer. */
function askingPage(request: StoredRequest): UniversalResponse {
  const { agent, asker, reason, form, label = "Secret", target } = request;
  const who = `<p>The agent <b>${html(agent)}</b> asks, in a task of <b>${html(asker)}</b>:</p>`;
  const warning = "<p>If you did not begin this task, close this page.</p>";
  const fields = {
    approval: button("approve", "Approve"),
    secret: `<label>${html(label)}<input type="password" name="secret" autocomplete="off" required></label>${button("give", "Send")}`,
    oauth: target === undefined ? "" : button("continue", `Continue to ${new URL(target).host}`),
    callback: "",
  }[form];
  const given = `<form method="post">${hidden(request)}${fields}</form>`;
  const refusal = `<form method="post">${hidden(request)}${button("deny", "Refuse")}</form>`;
  const content = `${who}<blockquote>${html(reason, 2000)}</blockquote>${warning}${given}${refusal}`;
  return page(200, "An agent asks for an authorization", content);
}

function thanksPage(denied: boolean): UniversalResponse {
  return page(200, denied ? "Refused" : "Received", "<p>You can close this page. The agent continues.</p>");
}

/** The page of every link that does not work. */
function gonePage(): UniversalResponse {
  return page(410, "This link does not work", "<p>It was used, it is too old, or it is not for you.</p>");
}

/** The page for a form without a required value. */
function invalidPage(): UniversalResponse {
  return page(400, "This is not complete", "<p>Go back, and try again.</p>");
}

function hidden({ token }: StoredRequest): string {
  return `<input type="hidden" name="request" value="${html(token, 8192)}">`;
}

function button(value: string, text: string): string {
  return `<button name="decision" value="${value}">${html(text)}</button> `;
}
