import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { AgentCard } from "@parley/a2a";
import type { Task } from "@parley/a2a/model";
import { messagesOf, RemoteAgent, useAgentCard, useConversation, useTask } from "@parley/react";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { expect, test } from "vitest";

/* A server renders only the given data. It never connects to the agent. */

const agent = new RemoteAgent("http://agent.invalid", {
  fetch: () => Promise.reject(new Error("A server does not connect")),
});

const card: AgentCard = {
  name: "Talker",
  description: "Talks.",
  version: "1.0.0",
  supportedInterfaces: [{ url: "http://agent.invalid", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: {},
  defaultInputModes: [],
  defaultOutputModes: [],
  skills: [],
};

const task: Task = {
  id: "t1",
  contextId: "c1",
  status: {
    state: "TASK_STATE_FAILED",
    message: { messageId: "m2", role: "ROLE_AGENT", parts: [{ text: "The station is closed" }] },
  },
  history: [{ messageId: "m1", role: "ROLE_USER", parts: [{ text: "Weather?" }] }],
  artifacts: [{ artifactId: "a", parts: [{ text: "Sunny" }] }],
};

/** Renders the result of a hook as JSON. */
function rendered(hook: () => unknown): unknown {
  const Component = (): string => JSON.stringify(hook());
  const html = renderToString(createElement(Component));
  return JSON.parse(html.replaceAll("&quot;", '"'));
}

test("renders a given card", () => {
  expect(rendered(() => useAgentCard({ agent }))).toEqual({ status: "submitted" });
  expect(rendered(() => useAgentCard({ agent, card }).card)).toEqual(card);
  expect(rendered(() => useAgentCard({ agent, card, suspense: true }).card.name)).toBe("Talker");
  // One user's data is not visible to the next.
  expect(rendered(() => useAgentCard({ agent }))).toEqual({ status: "submitted" });
  expect(() => rendered(() => useAgentCard({ agent, suspense: true }))).toThrow("needs the option card on a server");
});

test("renders a given task", () => {
  expect(rendered(() => useTask({ agent, task: "t1" }))).toEqual({ messages: [], status: "submitted" });
  const { status, task: shown } = rendered(() => useTask({ agent, task })) as ReturnType<typeof useTask>;
  expect({ status, shown }).toEqual({ status: "error", shown: task });
  expect(rendered(() => useTask({ agent, task: "t1" }))).toEqual({ messages: [], status: "submitted" });
});

test("renders a conversation with given tasks", () => {
  expect(rendered(() => useConversation({ agent }))).toMatchObject({ messages: [], status: "ready" });
  expect(rendered(() => useConversation({ agent, tasks: [task] }))).toMatchObject({
    contextId: "c1",
    messages: messagesOf(task),
    status: "error",
  });
  expect(messagesOf(task)).toEqual([
    { id: "m1", role: "user", parts: [{ text: "Weather?" }], taskId: "t1" },
    {
      id: "answer-m1",
      role: "assistant",
      parts: [{ text: "Sunny" }],
      taskId: "t1",
      state: "TASK_STATE_FAILED",
      failure: "The station is closed",
    },
  ]);
});

test("only the hooks import React, and they are client components", () => {
  const folder = join(import.meta.dirname, "..", "src");
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  const ofReact = files.filter((code) => code.includes('from "react"'));
  expect(ofReact.map((code) => code.split("\n")[0])).toEqual(['"use client";']);
});

test("the code in the guide is a file that compiles", () => {
  const code = readFileSync(join(import.meta.dirname, "page", "docs.tsx"), "utf8");
  const guide = readFileSync(join(import.meta.dirname, "..", "..", "..", "docs", "react.md"), "utf8");
  expect(guide).toContain(`\`\`\`tsx\n${code}\`\`\`\n`);
});
