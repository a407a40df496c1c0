import type { Mismatch } from "./assert.ts";

/** The server did not do what a step expects. */
export class Failed extends Error {
  readonly mismatch: Mismatch | undefined;

  constructor(message: string, mismatch?: Mismatch) {
    super(message);
    this.mismatch = mismatch;
  }
}

/** Throws Failed where there is a mismatch. Default of `sentence`: what was expected and what came. */
export function demand(wrong: Mismatch | undefined, sentence?: string): void {
  if (wrong === undefined) return;
  const { path, expected, actual } = wrong;
  throw new Failed(sentence ?? `${path === "" ? "" : `${path}: `}expected ${expected}, got ${actual}`, wrong);
}
