import * as installed from "@openai/agents";
import { checkPeer, installedVersion } from "../shared/peer.ts";

/*
 * The SDK functions that the adapter calls. Imported as a namespace: with named imports, the module loader would reject a version that lacks a
 * name, without reporting the supported range.
 */

const range = { adapter: "openai-agents", name: "@openai/agents", min: "0.17", below: "0.21" };
checkPeer(range, installedVersion(range.name, import.meta.url));

export const invokeFunctionTool: typeof installed.invokeFunctionTool = installed.invokeFunctionTool;
export const RunContext: typeof installed.RunContext = installed.RunContext;
export const Runner: typeof installed.Runner = installed.Runner;
export const RunState: typeof installed.RunState = installed.RunState;
