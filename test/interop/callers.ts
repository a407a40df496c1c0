import type { PeerProgram } from "./peer.ts";

/** The content of a user message in a test: a text, or a file. */
export type Saying = string | { readonly raw: string; readonly mediaType: string };

/** A third-party client. It runs with a URL and conversations, and reports what it showed for each message. */
export interface Caller extends PeerProgram {
  /** Suffixes of its step names: none if it waits for an answer, " stream" if it requests a stream. */
  readonly ways: readonly string[];
}

export const adkForPython: Caller = {
  name: "ADK for Python 2.13.0",
  environment: "adk",
  program: "framework_adk.py",
  ways: [""],
};

export const adkForJavaScript: Caller = {
  name: "ADK for JavaScript 2.0.0",
  environment: "node",
  program: "adk.mjs",
  ways: [""],
};

export const mastra: Caller = {
  name: "Mastra 1.71.0",
  environment: "node",
  program: "mastra.mjs",
  ways: ["", " stream"],
};

export const strands: Caller = {
  name: "Strands 1.62.0",
  environment: "strands",
  program: "framework_strands.py",
  ways: [""],
};

export const crewai: Caller = {
  name: "CrewAI 1.15.30",
  environment: "crewai",
  program: "framework_crewai.py",
  ways: ["", " stream"],
};

export const pythonSdk: Caller = {
  name: "the Python SDK 1.3.0",
  environment: "python1",
  program: "helper_v1.py",
  ways: ["", " stream"],
};

export const javaScriptSdk: Caller = {
  name: "the JavaScript SDK 1.3.0",
  environment: "node",
  program: "sdk.mjs",
  ways: ["", " stream"],
};

/** Run it like a user: `runCommand(goCommand, ["send", url, text])`. */
export const goCommand: PeerProgram = {
  name: "the command line of the Go SDK 2.3.1",
  environment: "go",
  program: "a2a",
};
