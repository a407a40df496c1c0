import { signal } from "@preact/signals";
import type { Lexer, Token, Tokens } from "marked";
import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";

/* Renders untrusted Markdown as elements, without HTML: tags appear as text, images as links. */

/** Maximum characters to render as Markdown. Hostile texts make a lexer slow; longer texts appear as plain text. */
const maxMarkdown = 100_000;

/** The Markdown lexer. Loaded lazily, because it would add a quarter to the code of the first screen, which needs no Markdown. */
const loaded = signal<typeof Lexer | undefined>(undefined);
let isLoading = false;

function load(): void {
  if (isLoading) return;
  isLoading = true;
  void import("marked").then(({ Lexer }) => (loaded.value = Lexer));
}

export function Markdown({ text }: { readonly text: string }): JSX.Element {
  const lexer = loaded.value;
  const tokens = useMemo(() => lexer && tokensOf(text, lexer), [text, lexer]);
  if (lexer === undefined) {
    load();
    return (
      <div class="markdown">
        <p>{text}</p>
      </div>
    );
  }
  if (tokens === undefined) return <pre class="plain">{text}</pre>;
  return <div class="markdown">{tokens.map(block)}</div>;
}

/** Quotes and lists nested this deep could overflow the lexer's stack, so such a text appears as plain text. */
const deep = /^(?:[ \t]*(?:>|[*+-][ \t]|\d{1,9}[.)][ \t])){16}/m;

/** Time limit for lexing emphasis and links, in milliseconds. The rest of the text appears without them. */
const inlineBudget = 100;

/** The blocks of a text. `undefined`: show it as plain text. */
function tokensOf(text: string, Reader: typeof Lexer): readonly Token[] | undefined {
  if (text.length > maxMarkdown || deep.test(text)) return undefined;
  const until = performance.now() + inlineBudget;
  try {
    const lexer = new Reader({ gfm: true, breaks: true });
    lexer.blockTokens(text.replace(/\r\n?/g, "\n"), lexer.tokens);
    for (const { src, tokens } of lexer.inlineQueue) {
      if (performance.now() < until && isTame(src)) lexer.inlineTokens(src, tokens);
      else tokens.push({ type: "text", raw: src, text: src });
    }
    return lexer.tokens;
  } catch {
    return undefined;
  }
}

/** Whether lexing a paragraph is cheap. The time is quadratic in the number of delimiters and the length of words. */
function isTame(src: string): boolean {
  return (src.match(/[*_~`[\]<!@]/g)?.length ?? 0) <= 200 && !/\S{1000}/.test(src);
}

function block(token: Token): ComponentChildren {
  switch (token.type) {
    case "heading":
      return <p class="heading">{inline(token as Tokens.Heading)}</p>;
    case "paragraph":
      return <p>{inline(token as Tokens.Paragraph)}</p>;
    case "code":
      return (
        <pre tabIndex={0}>
          <code>{(token as Tokens.Code).text}</code>
        </pre>
      );
    case "blockquote":
      return <blockquote>{(token as Tokens.Blockquote).tokens.map(block)}</blockquote>;
    case "list":
      return list(token as Tokens.List);
    case "table":
      return table(token as Tokens.Table);
    case "hr":
      return <hr />;
    case "space":
    case "def":
      return undefined;
    case "text":
      return "tokens" in token && token.tokens !== undefined ? token.tokens.map(span) : token.raw;
    default:
      return <p>{token.raw}</p>;
  }
}

function list({ ordered, start, items }: Tokens.List): JSX.Element {
  const entries = items.map((item) => <li>{item.tokens.map(block)}</li>);
  return ordered ? <ol start={start === "" ? 1 : start}>{entries}</ol> : <ul>{entries}</ul>;
}

function table({ header, rows }: Tokens.Table): JSX.Element {
  const row = (cells: readonly Tokens.TableCell[], Cell: "th" | "td") => (
    <tr>
      {cells.map((cell) => (
        <Cell>{cell.tokens.map(span)}</Cell>
      ))}
    </tr>
  );
  return (
    <div class="scroll" tabIndex={0}>
      <table>
        <thead>{row(header, "th")}</thead>
        <tbody>{rows.map((cells) => row(cells, "td"))}</tbody>
      </table>
    </div>
  );
}

function inline({ tokens }: { readonly tokens: readonly Token[] }): ComponentChildren {
  return tokens.map(span);
}

function span(token: Token): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token as Tokens.Strong)}</strong>;
    case "em":
      return <em>{inline(token as Tokens.Em)}</em>;
    case "del":
      return <del>{inline(token as Tokens.Del)}</del>;
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link":
      return <WebLink href={(token as Tokens.Link).href}>{inline(token as Tokens.Link)}</WebLink>;
    case "image":
      return <WebLink href={(token as Tokens.Image).href}>{(token as Tokens.Image).text || "image"}</WebLink>;
    case "escape":
      return (token as Tokens.Escape).text;
    default:
      return token.raw;
  }
}

/** A link to an HTTP URL, with the URL as its title. Any other URL appears as text. */
export function WebLink({ href, children }: { readonly href: string; readonly children?: ComponentChildren }) {
  if (!/^https?:\/\//i.test(href) || !URL.canParse(href)) return <span>{children ?? href}</span>;
  return (
    <a href={new URL(href).href} title={href} target="_blank" rel="noreferrer noopener nofollow">
      {children ?? href}
    </a>
  );
}
