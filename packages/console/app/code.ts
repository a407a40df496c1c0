import type { RequestRecord } from "../src/api.ts";

/** A program that sends the request again: an A2A call through the client, anything else through `fetch`. */
export function asCode({ method, url, headers, body, operation }: RequestRecord): string {
  const kept = headers.filter(([name]) => !/^(?:content-type|accept|a2a-|content-length|user-agent)/i.test(name));
  const given = Object.fromEntries(kept.map(([name, value]) => [name, value.replace(/•••/g, "SECRET")]));
  const call = callIn(body.text, operation);
  if (call === undefined) {
    const init = { method, headers: Object.fromEntries(headers), ...(body.bytes > 0 && { body: body.text }) };
    return `const response = await fetch(${literal(url)}, ${literal(init)});\nconsole.log(await response.text());\n`;
  }
  const options = kept.length === 0 ? "" : `, { headers: ${literal(given)} }`;
  return [
    'import { connect } from "@parley/a2a";',
    "",
    `const client = await connect(${literal(url)}${options});`,
    /Stream|Subscribe/.test(call.method)
      ? `for await (const event of client.${functionOf(call.method)}(${argumentOf(call)})) console.log(event);`
      : `console.log(await client.${functionOf(call.method)}(${argumentOf(call)}));`,
    "",
  ].join("\n");
}

interface Call {
  readonly method: string;
  readonly params: unknown;
}

/** Operations whose client function takes the A2A request. For all other operations, the function takes a task id. */
const operations = /^(?:Send(?:Streaming)?Message|ListTasks)$/;
const byId = /^(?:GetTask|CancelTask|SubscribeToTask)$/;

function callIn(text: string, operation: string | undefined): Call | undefined {
  try {
    const read: unknown = JSON.parse(text);
    if (typeof read !== "object" || read === null) return undefined;
    const { method, params } = { method: operation, params: read, ...read };
    if (typeof method !== "string") return undefined;
    if (operations.test(method)) return { method, params };
    const hasId = typeof params === "object" && params !== null && "id" in params && typeof params.id === "string";
    return byId.test(method) && hasId ? { method, params } : undefined;
  } catch {
    return undefined;
  }
}

function argumentOf({ method, params }: Call): string {
  const isById = byId.test(method) && typeof params === "object" && params !== null && "id" in params;
  return literal(isById ? params.id : params);
}

function functionOf(method: string): string {
  return method.charAt(0).toLowerCase() + method.slice(1);
}

/** JSON as a JavaScript literal. Escapes `<` and Unicode line separators, so it can be pasted anywhere. */
function literal(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? "undefined";
  return text.replace(/[<\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A curl command that sends the request again. The user must fill in masked headers. */
export function asCurl({ method, url, headers, body }: RequestRecord): string {
  const lines = [
    // Otherwise curl would treat a URL that begins with a hyphen as an option.
    `curl --url ${quoted(url)}`,
    ...(method === "GET" ? [] : [`-X ${quoted(method)}`]),
    ...headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body.bytes === 0 ? [] : [`--data-raw ${quoted(body.text)}`]),
  ];
  return lines.join(" \\\n  ");
}

/**
 * Quotes a word for a POSIX shell. Writes control characters as escapes: pasted into a terminal, they could end the command, and the
 * rest of the word would run as another command. An argument cannot contain NUL.
 */
function quoted(text: string): string {
  const escaped = text
    .replaceAll("\0", "")
    .replaceAll("'", "'\\''")
    .replaceAll(/[^\P{Cc}\n]+/gu, (found) => `'"$(printf '${octal(found)}')"'`);
  return `'${escaped}'`;
}

function octal(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}
