import type { Part } from "@parley/a2a";
import { authorizationMember } from "@parley/a2a/internal/protocol/authorization";
import { line } from "@parley/a2a/internal/base/display";
import { useEffect, useMemo } from "preact/hooks";
import { lazily } from "../lazy.tsx";
import { Markdown, WebLink } from "./markdown.tsx";

const AuthorizationPart = lazily(async () => (await import("./authorization.tsx")).AuthorizationPart);

/** The parts of a message or an artifact. */
export function Content({ parts }: { readonly parts: readonly Part[] }) {
  return (
    <>
      {parts.map((part, at) => (
        <OnePart key={at} part={part} />
      ))}
    </>
  );
}

function OnePart({ part }: { readonly part: Part }) {
  if (part.text !== undefined) return <Markdown text={part.text} />;
  if (part.data !== undefined) return <Data part={part} value={part.data} />;
  const name = line(part.filename ?? "file", 200);
  if (part.url !== undefined) return <WebLink href={part.url}>{name}</WebLink>;
  return <FileOf raw={part.raw ?? ""} name={name} mediaType={part.mediaType ?? "application/octet-stream"} />;
}

/** Collapsed for data that the console itself handles: forms and authorizations. */
function Data({ part, value }: { readonly part: Part; readonly value: unknown }) {
  const { mediaType = "" } = part;
  const members = typeof value === "object" && value !== null ? Object.keys(value) : [];
  const isAuthorization = members.includes(authorizationMember);
  const isAsking = mediaType.startsWith("application/schema+json") || members.includes("form");
  if (!isAsking && !isAuthorization) return <Json value={value} />;
  return (
    <>
      {isAuthorization && <AuthorizationPart part={part} />}
      <details>
        <summary class="quiet">Data</summary>
        <Json value={value} />
      </details>
    </>
  );
}

/** Maximum characters of data to show. */
const maxJson = 200_000;

export function Json({ value }: { readonly value: unknown }) {
  const text = useMemo(() => jsonOf(value), [value]);
  const left = text.length - maxJson;
  return (
    <>
      <pre tabIndex={0}>
        <code>{text.slice(0, maxJson)}</code>
      </pre>
      {left > 0 && <p class="quiet">And {left.toLocaleString("en")} more characters.</p>}
    </>
  );
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value, null, 2) ?? "";
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}

/** Image types that cannot run scripts. SVG can. */
const drawn = /^image\/(?:png|jpeg|gif|webp|avif)$/;

/** An inline file. Shows an image; offers any other file for download, and never opens it in the page. */
function FileOf({ raw, name, mediaType }: { readonly raw: string; readonly name: string; readonly mediaType: string }) {
  const isImage = drawn.test(mediaType);
  const { url, size } = useMemo(() => {
    const bytes = bytesOf(raw);
    const type = isImage ? mediaType : "application/octet-stream";
    return { url: URL.createObjectURL(new Blob([bytes], { type })), size: bytes.length };
  }, [raw, mediaType]);
  useEffect(() => () => URL.revokeObjectURL(url), [url]);
  return (
    <figure class="file">
      {isImage && <img src={url} alt={name} />}
      <figcaption>
        <a href={url} download={name}>
          {name}
        </a>
        <span class="quiet">
          {mediaType} · {sizeText(size)}
        </span>
      </figcaption>
    </figure>
  );
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
