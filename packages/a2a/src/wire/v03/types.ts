import type { AgentCardSignature, AgentExtension, AgentProvider, JsonObject } from "../../model/index.ts";

/**
 * The JSON of A2A 0.3 and 0.2.5 over JSON-RPC (0.3 §5.5, §6, §7). Members that some implementations leave out or name
 * differently are optional here.
 */

export interface TextPart03 {
  readonly kind: "text";
  readonly text: string;
  readonly metadata?: JsonObject;
}

/** It has `bytes` or `uri`. Older versions call them `fileWithBytes` and `fileWithUri`. */
export interface File03 {
  readonly bytes?: string;
  readonly uri?: string;
  readonly fileWithBytes?: string;
  readonly fileWithUri?: string;
  readonly name?: string;
  readonly mimeType?: string;
}

export interface FilePart03 {
  readonly kind: "file";
  readonly file: File03;
  readonly metadata?: JsonObject;
}

export interface DataPart03 {
  readonly kind: "data";
  readonly data: JsonObject;
  readonly metadata?: JsonObject;
}

export type Part03 = TextPart03 | FilePart03 | DataPart03;

export type Role03 = "user" | "agent";

export interface Message03 {
  readonly kind?: "message";
  readonly messageId: string;
  readonly contextId?: string;
  readonly taskId?: string;
  readonly role: Role03;
  readonly parts: readonly Part03[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
  readonly referenceTaskIds?: readonly string[];
}

export interface Artifact03 {
  readonly artifactId: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly Part03[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
}

export type TaskState03 =
  | "submitted"
  | "working"
  | "input-required"
  | "completed"
  | "canceled"
  | "failed"
  | "rejected"
  | "auth-required"
  | "unknown"
  /** The spelling of the proto of 0.3, which some implementations use in JSON too. */
  | "cancelled";

export interface TaskStatus03 {
  readonly state: TaskState03;
  readonly message?: Message03;
  readonly timestamp?: string;
}

export interface Task03 {
  readonly kind?: "task";
  readonly id: string;
  readonly contextId?: string;
  readonly status: TaskStatus03;
  readonly history?: readonly Message03[];
  readonly artifacts?: readonly Artifact03[];
  readonly metadata?: JsonObject;
}

export interface TaskStatusUpdateEvent03 {
  readonly kind?: "status-update";
  readonly taskId: string;
  readonly contextId: string;
  readonly status: TaskStatus03;
  readonly final?: boolean;
  readonly metadata?: JsonObject;
}

export interface TaskArtifactUpdateEvent03 {
  readonly kind?: "artifact-update";
  readonly taskId: string;
  readonly contextId: string;
  readonly artifact: Artifact03;
  readonly append?: boolean;
  readonly lastChunk?: boolean;
  readonly metadata?: JsonObject;
}

/** An event of a stream. `kind` tells which one. */
export type Event03 =
  | (Task03 & { readonly kind: "task" })
  | (Message03 & { readonly kind: "message" })
  | (TaskStatusUpdateEvent03 & { readonly kind: "status-update" })
  | (TaskArtifactUpdateEvent03 & { readonly kind: "artifact-update" });

export interface PushNotificationConfig03 {
  readonly id?: string;
  readonly url: string;
  readonly token?: string;
  readonly authentication?: { readonly schemes: readonly string[]; readonly credentials?: string };
}

export interface TaskPushNotificationConfig03 {
  readonly taskId: string;
  readonly pushNotificationConfig: PushNotificationConfig03;
}

export interface MessageSendConfiguration03 {
  readonly acceptedOutputModes?: readonly string[];
  readonly historyLength?: number;
  readonly pushNotificationConfig?: PushNotificationConfig03;
  readonly blocking?: boolean;
}

export interface MessageSendParams03 {
  readonly message: Message03;
  readonly configuration?: MessageSendConfiguration03;
  readonly metadata?: JsonObject;
}

export interface TaskIdParams03 {
  readonly id: string;
  readonly metadata?: JsonObject;
}

export interface TaskQueryParams03 extends TaskIdParams03 {
  readonly historyLength?: number;
}

/** Without `pushNotificationConfigId` it asks for any config of the task. */
export interface PushConfigParams03 extends TaskIdParams03 {
  readonly pushNotificationConfigId?: string;
}

export interface PushConfigDeleteParams03 extends TaskIdParams03 {
  readonly pushNotificationConfigId: string;
}

export interface OAuthFlow03 {
  readonly authorizationUrl?: string;
  readonly tokenUrl?: string;
  readonly refreshUrl?: string;
  readonly scopes?: { readonly [scope: string]: string };
}

/** The members of all kinds of schemes. `type` tells which kind it is. */
export interface SecurityScheme03 {
  readonly type?: string;
  readonly description?: string;
  readonly in?: string;
  /** The name of `in` in the proto. */
  readonly location?: string;
  readonly name?: string;
  readonly scheme?: string;
  readonly bearerFormat?: string;
  readonly flows?: { readonly [flow: string]: OAuthFlow03 };
  readonly oauth2MetadataUrl?: string;
  readonly openIdConnectUrl?: string;
}

export type Security03 = readonly { readonly [scheme: string]: readonly string[] }[];

export interface AgentSkill03 {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly examples?: readonly string[];
  readonly inputModes?: readonly string[];
  readonly outputModes?: readonly string[];
  readonly security?: Security03;
}

export interface AgentInterface03 {
  readonly url: string;
  readonly transport: string;
}

export interface AgentCard03 {
  readonly protocolVersion?: string;
  readonly name: string;
  readonly description: string;
  readonly url: string;
  readonly preferredTransport?: string;
  readonly additionalInterfaces?: readonly AgentInterface03[];
  readonly iconUrl?: string;
  readonly provider?: AgentProvider;
  readonly version: string;
  readonly documentationUrl?: string;
  readonly capabilities: {
    readonly streaming?: boolean;
    readonly pushNotifications?: boolean;
    readonly extensions?: readonly AgentExtension[];
  };
  readonly securitySchemes?: { readonly [name: string]: SecurityScheme03 };
  readonly security?: Security03;
  readonly defaultInputModes: readonly string[];
  readonly defaultOutputModes: readonly string[];
  readonly skills: readonly AgentSkill03[];
  readonly supportsAuthenticatedExtendedCard?: boolean;
  /** Its name in some implementations. */
  readonly supportsExtendedAgentCard?: boolean;
  readonly signatures?: readonly AgentCardSignature[];
}
