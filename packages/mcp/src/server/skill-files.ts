import { ProtocolError, ProtocolErrorCode, type ReadResourceResult, type Server } from "@modelcontextprotocol/server";
import {
  skillEntry,
  SKILLS_EXTENSION_ID,
  SKILLS_GET_METHOD,
  SKILLS_LIST_METHOD,
} from "@modelcontextprotocol/server/ext/skills";
import type { Skill } from "@modelcontextprotocol/server/ext/skills";
import * as z from "zod";
import type { SkillTool } from "./skills.ts";

/*
 * The tools as SKILL.md files (SEP-2640), for clients that load skills on demand. The SDK's SkillsExtension requires its McpServer, so these
 * handlers use only its entries.
 */

/** A skill and its only file. */
export interface SkillFile {
  readonly entry: Skill;
  readonly text: string;
}

/** Makes the files of all tools. */
export async function skillFiles(tools: readonly SkillTool[]): Promise<readonly SkillFile[]> {
  const taken = new Set<string>();
  return Promise.all(
    tools.map(async ({ tool }) => {
      const name = uniqueName(tool.name, taken);
      const text = fileOf(name, tool.name, tool.description ?? "");
      return { entry: await skillEntry(name, { "SKILL.md": text }), text };
    }),
  );
}

const maxName = 64;

/** Makes a skill name: lowercase letters, digits and single hyphens. */
function uniqueName(tool: string, taken: Set<string>): string {
  const clean = tool
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  let name = clean;
  for (let number = 2; taken.has(name); number += 1) {
    const end = `-${number}`;
    name = `${clean.slice(0, maxName - end.length).replace(/-$/, "")}${end}`;
  }
  taken.add(name);
  return name;
}

function fileOf(name: string, tool: string, description: string): string {
  // A JSON string is also a YAML string.
  return `---
name: ${name}
description: ${JSON.stringify(description)}
---

Call the tool \`${tool}\` of this server with your request as \`message\`, and with \`files\` or \`data\` if needed.

- To continue a conversation, pass the \`contextId\` of its last answer.
- If a task is still running, call \`get_task\` with its \`taskId\`. If it asks something, call \`answer_task\`.
`;
}

/** Adds the methods of the extension to a server. */
export function serveSkillFiles(server: Server, files: readonly SkillFile[], isModern: boolean): void {
  const cached = isModern ? { ttlMs: 0, cacheScope: "private" } : {};
  server.registerCapabilities({ extensions: { [SKILLS_EXTENSION_ID]: {} } });
  server.setRequestHandler(SKILLS_LIST_METHOD, { params: z.looseObject({}), result }, () => ({
    skills: files.map(({ entry }) => entry),
    ...cached,
  }));
  server.setRequestHandler(SKILLS_GET_METHOD, { params: z.looseObject({ uri: z.string() }), result }, ({ uri }) => {
    const found = fileAt(uri, files);
    if (found === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "There is no such skill");
    return { skill: found.entry, ...cached };
  });
}

const result = z.looseObject({});

function fileAt(uri: string, files: readonly SkillFile[]): SkillFile | undefined {
  return files.find(({ entry }) => entry.uri === uri);
}

/** The content of a SKILL.md. `undefined` if the URI does not belong to a skill. */
export function readSkillFile(uri: string, files: readonly SkillFile[]): ReadResourceResult["contents"] | undefined {
  const found = fileAt(uri, files);
  return found && [{ uri, mimeType: "text/markdown", text: found.text }];
}
