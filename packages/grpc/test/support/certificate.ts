import { generate } from "selfsigned";

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate that only this test trusts, for the given names and addresses. */
export async function certificateFor(...names: readonly string[]): Promise<Certificate> {
  const altNames = names.map((name) =>
    /^[\d.]+$/.test(name) ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
  );
  const made = await generate([{ name: "commonName", value: names[0] ?? "" }], {
    algorithm: "sha256",
    keyType: "ec",
    extensions: [{ name: "subjectAltName", altNames }],
  });
  return { cert: made.cert, key: made.private };
}
