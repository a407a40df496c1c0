import * as installed from "@openai/agents";
import { checkPeer, installedVersion } from "../shared/peer.ts";

/*
 * What the adapter calls of the SDK. As members of a namespace: a version without one of these names would otherwise be rejected by the module
 * loader, which does not tell the range.
 */

const range = { adapter: "openai-agents", name: "@openai/agents", min: "0.17", below: "0.21" };
checkPeer(range, installedVersion(range.name, import.meta.url));

export const invokeFunctionTool: typeof installed.invokeFunctionTool = installed.invokeFunctionTool;
export const RunContext: typeof installed.RunContext = installed.RunContext;
export const Runner: typeof installed.Runner = installed.Runner;
export const RunState: typeof installed.RunState = installed.RunState;
