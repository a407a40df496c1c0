import type { Mismatch } from "./assert.ts";

/** The server did not do what a step asks of it. */
export class Failed extends Error {
  readonly mismatch: Mismatch | undefined;

  constructor(message: string, mismatch?: Mismatch) {
    super(message);
    this.mismatch = mismatch;
  }
}

/** Throws where something is wrong, in a sentence unless there is a better one. */
export function demand(wrong: Mismatch | undefined, sentence?: string): void {
  if (wrong === undefined) return;
  const { path, expected, actual } = wrong;
  throw new Failed(sentence ?? `${path === "" ? "" : `${path}: `}expected ${expected}, got ${actual}`, wrong);
}
