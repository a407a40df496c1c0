import { html } from "@parley/a2a/internal/base/display";

/* What all pages for browsers share. They have no script and load nothing. */

const style =
  ":root{color-scheme:light dark;--line:#8886;--soft:#8881}" +
  "body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:0 auto;padding:1.5rem 1rem 4rem;color:#1c1c1e;background:#fff}" +
  "h1{margin:0 0 .5rem;font-size:1.9rem;line-height:1.2}h2{margin:2.2rem 0 .6rem;font-size:1.2rem}h3{margin:0;font-size:1rem}" +
  "h1,h2,h3,p,li,dd,td{overflow-wrap:anywhere}p{margin:.3rem 0}.text{white-space:pre-line}a{color:#0b57d0}" +
  "dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:1rem 0}dt{opacity:.7}dd{margin:0}" +
  "article{padding:.8rem 0;border-top:1px solid var(--line)}ul{margin:.3rem 0;padding-left:1.2rem}" +
  ".tags{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.3rem}.tags li{padding:0 .5rem;border:1px solid var(--line);border-radius:1rem;font-size:.85rem}" +
  "pre{margin:.4rem 0 1rem;padding:.8rem;overflow-x:auto;background:var(--soft);border-radius:.4rem;font-size:.85rem}" +
  "code{font-family:ui-monospace,monospace}" +
  "@media(prefers-color-scheme:dark){body{color:#e8e8ea;background:#161618}a{color:#8ab4f8}}" +
  "@media(max-width:30rem){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4rem}h1{font-size:1.5rem}}";

/** A page. `content` is HTML. */
export function frame(title: string, content: string): string {
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">' +
    `<title>${html(title, 200)}</title><style>${style}</style></head><body>${content}</body></html>`
  );
}

/** The headers of a page: it may use its own style and nothing else. */
export async function pageHeaders(): Promise<Readonly<Record<string, string>>> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(style)));
  const hash = btoa(String.fromCharCode(...digest));
  return {
    "content-type": "text/html; charset=utf-8",
    // The same address answers other clients in another way.
    vary: "Accept",
    "cache-control": "no-cache",
    "content-security-policy": `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
  };
}

/** A link to an address of the web. Any other address is text: `javascript:` would run in the page. */
export function link(url: string, text: string = url): string {
  const shown = html(text, 300);
  const isWeb = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) && url.length <= 2000;
  return isWeb ? `<a href="${html(new URL(url).href, 6000)}" rel="noreferrer nofollow">${shown}</a>` : shown;
}

/** Text that a stranger may have written, as a paragraph. */
export function paragraph(text: string, limit: number): string {
  return `<p class="text" dir="auto">${html(text, limit)}</p>`;
}
