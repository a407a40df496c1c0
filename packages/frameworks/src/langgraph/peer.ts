import * as installed from "@langchain/langgraph";
import * as schema from "@langchain/core/utils/json_schema";
import { checkPeer, installedVersion } from "../shared/peer.ts";

/*
 * The LangGraph functions that the adapter calls. Imported as a namespace: with named imports, the module loader would reject a version that lacks
 * a name, without reporting the supported range.
 */

for (const name of ["@langchain/langgraph", "@langchain/core"])
  checkPeer({ adapter: "langgraph", name, min: 1, below: 2 }, installedVersion(name, import.meta.url));

export const BaseCheckpointSaver: typeof installed.BaseCheckpointSaver = installed.BaseCheckpointSaver;
export const Command: typeof installed.Command = installed.Command;
export const isCommand: typeof installed.isCommand = installed.isCommand;
export const isGraphBubbleUp: typeof installed.isGraphBubbleUp = installed.isGraphBubbleUp;
export const Validator: typeof schema.Validator = schema.Validator;
