import { A2AError, type AgentCard, type Part, type SendMessageRequest } from "../model/index.ts";
import type { CallContext, OperationName } from "../protocol/index.ts";
import type { HostedAgent } from "./options.ts";

/** What is refused before any work (D13, A2A 1.0 §3.3.4), the same on every binding. */

const needs: { readonly [Name in OperationName]?: "streaming" | "push" | "extendedCard" } = {
  SendStreamingMessage: "streaming",
  SubscribeToTask: "streaming",
  CreateTaskPushNotificationConfig: "push",
  GetTaskPushNotificationConfig: "push",
  ListTaskPushNotificationConfigs: "push",
  DeleteTaskPushNotificationConfig: "push",
  GetExtendedAgentCard: "extendedCard",
};

export function checkCapability({ card, extendedCard }: HostedAgent, operation: OperationName): void {
  const { capabilities } = card;
  switch (needs[operation]) {
    case "streaming":
      if (capabilities.streaming !== true) throw new A2AError("UnsupportedOperation", "This agent does not stream");
      return;
    case "push":
      if (capabilities.pushNotifications !== true) throw new A2AError("PushNotificationNotSupported");
      return;
    case "extendedCard":
      if (capabilities.extendedAgentCard !== true) {
        throw new A2AError("UnsupportedOperation", "This agent has no extended card");
      }
      if (extendedCard === undefined) throw new A2AError("ExtendedAgentCardNotConfigured");
      return;
    default:
  }
}

/** Extensions that the caller asked for and the card declares (§4.6); refuses a caller who lacks a required one. */
export function activate(card: AgentCard, { extensions }: Pick<CallContext, "extensions">): readonly string[] {
  const declared = card.capabilities.extensions ?? [];
  const missing = declared.filter(
    ({ uri, required }) => required === true && uri !== undefined && !extensions.includes(uri),
  );
  if (missing.length > 0) {
    const uris = missing.map(({ uri }) => uri).join(", ");
    throw new A2AError("ExtensionSupportRequired", `Required extensions were not requested: ${uris}`, {
      metadata: { extensions: uris },
    });
  }
  return extensions.length === 0 ? [] : declared.flatMap(({ uri = "" }) => (extensions.includes(uri) ? [uri] : []));
}

/** Refuses what an agent cannot read, and a webhook where there are none. */
export function checkSend({ card }: HostedAgent, request: SendMessageRequest): void {
  if (request.configuration?.taskPushNotificationConfig !== undefined && card.capabilities.pushNotifications !== true) {
    throw new A2AError("PushNotificationNotSupported");
  }
  if (request.message.role !== "ROLE_USER") {
    const fields = [{ field: "message.role", description: "must be ROLE_USER: a client speaks for its user" }];
    throw new A2AError("InvalidParams", undefined, { fields });
  }
  const accepted = [...card.defaultInputModes, ...card.skills.flatMap((skill) => skill.inputModes ?? [])];
  request.message.parts.forEach((part, index) => {
    const mediaType = mediaTypeOf(part);
    if (mediaType === undefined || accepted.some((mode) => covers(mode, mediaType))) return;
    throw new A2AError("ContentTypeNotSupported", `This agent does not read ${mediaType}`, {
      fields: [
        {
          field: `message.parts[${index}].mediaType`,
          description: `must be one of ${[...new Set(accepted)].join(", ")}`,
        },
      ],
      metadata: { mediaType },
    });
  });
}

/** The media type of a part, without parameters; a file that does not say is the agent's to find out. */
function mediaTypeOf(part: Part): string | undefined {
  const implied = part.text !== undefined ? "text/plain" : part.data !== undefined ? "application/json" : undefined;
  return part.mediaType === undefined ? implied : bare(part.mediaType);
}

function bare(mediaType: string): string {
  return (mediaType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** Whether a mode of a card covers a media type; `text/*` and `*` are understood. */
function covers(mode: string, mediaType: string): boolean {
  const pattern = bare(mode);
  if (pattern === "*" || pattern === "*/*" || pattern === mediaType) return true;
  return pattern.endsWith("/*") && mediaType.startsWith(pattern.slice(0, -1));
}
