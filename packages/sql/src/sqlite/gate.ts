/**
 * Between a thread that works in a library and the process that ends: `libsql` aborts the process when its thread is
 * stopped inside of it, so whoever ends the process waits until the thread has come out, and it does not go in again.
 * Two bits of memory that both threads share.
 */
const inside = 1;
const closed = 2;

/** Longer than any transaction takes, in milliseconds; beyond it the process ends although the disk hangs. */
const exitTimeout = 10_000;

export type Gate = Int32Array<SharedArrayBuffer>;

export function openGate(): Gate {
  return new Int32Array(new SharedArrayBuffer(4));
}

/** In the thread: runs `body` inside. Never comes back once the gate is closed. */
export function pass<T>(gate: Gate, body: () => T): T {
  if ((Atomics.or(gate, 0, inside) & closed) !== 0) {
    leave(gate);
    Atomics.wait(gate, 0, closed);
  }
  try {
    return body();
  } finally {
    leave(gate);
  }
}

function leave(gate: Gate): void {
  Atomics.and(gate, 0, ~inside);
  Atomics.notify(gate, 0);
}

/** In the process that ends: returns when the thread is outside. Blocks, since nothing asynchronous happens any more. */
export function closeGate(gate: Gate): void {
  if ((Atomics.or(gate, 0, closed) & inside) !== 0) Atomics.wait(gate, 0, inside | closed, exitTimeout);
}
