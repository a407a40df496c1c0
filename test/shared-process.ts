import { deepEqual } from "node:assert/strict";
import { afterAll, beforeAll, vi } from "vitest";

/**
 * Most test files run in sequence in a shared process. Each of them must restore the process: this hook runs around every
 * such file, and fails it otherwise. Files that cannot comply are in `alone` of test/projects.ts.
 */

const events = ["SIGINT", "SIGTERM", "SIGHUP", "exit", "uncaughtException", "unhandledRejection", "warning"];

function state() {
  return {
    environment: { ...process.env },
    folder: process.cwd(),
    globals: Object.getOwnPropertyNames(globalThis),
    // Some servers replace these by their own classes, for the whole process.
    web: [Request, Response, Headers, fetch, AbortController],
    listeners: Object.fromEntries(events.map((event) => [event, process.listenerCount(event)])),
    fakeTimers: vi.isFakeTimers(),
  };
}

let before: ReturnType<typeof state>;

beforeAll(() => {
  before = state();
});

afterAll(() => {
  deepEqual(state(), before, "The file must restore its process, or be listed in `alone` of test/projects.ts");
});
