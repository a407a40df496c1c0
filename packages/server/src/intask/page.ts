import { html } from "@parley/a2a/internal/base/display";
import type { UniversalResponse } from "@parley/a2a/internal/protocol/index";
import type { StoredRequest } from "./row.ts";

/* The pages of a link. They have no script, and load nothing. */

const style =
  "body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem;color:#222;background:#fff}" +
  "blockquote{margin:1rem 0;padding:.5rem 1rem;border-left:.25rem solid #888;white-space:pre-wrap;overflow-wrap:anywhere}" +
  "button,input{font:inherit;padding:.4rem .9rem;margin:.3rem .3rem .3rem 0}input{width:100%;box-sizing:border-box}" +
  "@media(prefers-color-scheme:dark){body{color:#eee;background:#181818}}";

/** A page with its headers: nobody may keep it, put it into a frame, or learn its address. */
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

/** The page of a request that is open: what is asked, by which agent, for whom, and how to answer. */
export function askingPage(request: StoredRequest): UniversalResponse {
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

/** The page after an answer. */
export function thanksPage(denied: boolean): UniversalResponse {
  return page(200, denied ? "Refused" : "Received", "<p>You can close this page. The agent goes on.</p>");
}

/** The page of a link that does not work, whatever the reason is. */
export function gonePage(): UniversalResponse {
  return page(410, "This link does not work", "<p>It was used, it is too old, or it is not for you.</p>");
}

/** The page for a form that was sent without a value that it needs. */
export function invalidPage(): UniversalResponse {
  return page(400, "This is not complete", "<p>Go back, and try again.</p>");
}

function hidden({ token }: StoredRequest): string {
  return `<input type="hidden" name="request" value="${html(token, 8192)}">`;
}

function button(value: string, text: string): string {
  return `<button name="decision" value="${value}">${html(text)}</button> `;
}
