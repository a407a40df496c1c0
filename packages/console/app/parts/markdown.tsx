import { signal } from "@preact/signals";
import type { Lexer, Token, Tokens } from "marked";
import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";

/* Markdown of strangers, as elements. Nothing becomes HTML: a tag in the text is shown as text, and images are links. */

/** Texts beyond this are shown as they are: a lexer takes long for hostile ones. */
const maxMarkdown = 100_000;

/** What reads markdown, once it is loaded: it is a quarter of the first screen, which needs none. */
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

/** Quotes and lists in one another, beyond which a text is shown as it is: the lexer would run out of stack. */
const deep = /^(?:[ \t]*(?:>|[*+-][ \t]|\d{1,9}[.)][ \t])){16}/m;

/** Time for the emphasis and links of a text, in milliseconds. The rest is shown without them. */
const inlineBudget = 100;

/** The blocks of a text. `undefined`: it is shown as it is. */
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

/** Whether a paragraph is lexed in no time: with each delimiter, and with the length of a word, it takes quadratic time. */
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

/** A link to the web, with its address for all to see. Any other address is text. */
export function WebLink({ href, children }: { readonly href: string; readonly children?: ComponentChildren }) {
  if (!/^https?:\/\//i.test(href) || !URL.canParse(href)) return <span>{children ?? href}</span>;
  return (
    <a href={new URL(href).href} title={href} target="_blank" rel="noreferrer noopener nofollow">
      {children ?? href}
    </a>
  );
}
