import { generate } from "selfsigned";

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Creates a self-signed certificate for the given names and addresses. */
export async function certificateFor(...names: readonly string[]): Promise<Certificate> {
  const altNames = names.map((name) => {
    if (/^[\d.]+$/.test(name)) return { type: 7 as const, ip: name };
    return name.includes(":") ? { type: 6 as const, value: name } : { type: 2 as const, value: name };
  });
  const made = await generate([{ name: "commonName", value: names[0] ?? "" }], {
    algorithm: "sha256",
    keyType: "ec",
    extensions: [{ name: "subjectAltName", altNames }],
  });
  return { cert: made.cert, key: made.private };
}
