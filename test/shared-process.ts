import { deepEqual } from "node:assert/strict";
import { afterAll, beforeAll, vi } from "vitest";

/**
 * Most test files share a process with others, one after the other. Each of them must leave the process as it was: this
 * runs around every such file, and fails where one does not. Files that cannot are in `alone` of test/projects.ts.
 */

const events = ["SIGINT", "SIGTERM", "SIGHUP", "exit", "uncaughtException", "unhandledRejection", "warning"];

function state() {
  return {
    environment: { ...process.env },
    folder: process.cwd(),
    globals: Object.getOwnPropertyNames(globalThis),
    // Some servers replace them by classes of their own, for the whole process.
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
