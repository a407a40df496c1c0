import type { Json } from "./format.ts";
import { isMap } from "./path.ts";

/**
 * What the answers of A2A 1.0 look like (§4, `a2a.proto`), as a judge reads them: types, required fields, one of several,
 * camelCase. Written apart from the server's own schemas, so that one mistake does not hide the other. Fields that the
 * protocol does not know are let through, since a later minor version may add them.
 */

type Kind = (value: Json) => string | undefined;

interface Field {
  readonly kind: Kind | string;
  readonly list?: boolean;
  readonly map?: boolean;
  readonly required?: boolean;
  /** Of a required list: that it may be empty. */
  readonly mayBeEmpty?: boolean;
}

interface Shape {
  readonly fields: Readonly<Record<string, Field>>;
  /** Exactly one of these members. */
  readonly oneOf?: readonly string[];
}

export interface ShapeProblem {
  readonly path: string;
  readonly expected: string;
  readonly value: Json | undefined;
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;

const text: Kind = (value) => (typeof value === "string" ? undefined : "text");
const filled: Kind = (value) => (typeof value === "string" && value !== "" ? undefined : "text that is not empty");
const flag: Kind = (value) => (typeof value === "boolean" ? undefined : "true or false");
const int: Kind = (value) => (typeof value === "number" && Number.isInteger(value) ? undefined : "a whole number");
const object: Kind = (value) => (isMap(value) ? undefined : "an object");
const any: Kind = () => undefined;
const url: Kind = (value) => (typeof value === "string" && URL.canParse(value) ? undefined : "an absolute URL");
/** Of an interface: gRPC addresses are commonly without a scheme. */
const address: Kind = (value) =>
  typeof value === "string" && /^[^\s/]+(?::\d+$|:\/\/)/.test(value) ? undefined : "an address";
const bytes: Kind = (value) => (typeof value === "string" && base64.test(value) ? undefined : "base64 (RFC 4648 §4)");
const timestamp: Kind = (value) =>
  typeof value === "string" && time.test(value) && !Number.isNaN(Date.parse(value))
    ? undefined
    : "a time in UTC, such as 2026-01-31T12:00:00.000Z (§5.6.1)";
const oneOf =
  (...names: readonly string[]): Kind =>
  (value) =>
    typeof value === "string" && names.includes(value) ? undefined : `one of ${names.join(", ")}`;

const state = oneOf(
  ...["SUBMITTED", "WORKING", "COMPLETED", "FAILED", "CANCELED", "INPUT_REQUIRED", "REJECTED", "AUTH_REQUIRED"].map(
    (name) => `TASK_STATE_${name}`,
  ),
);

const must = (kind: Kind | string): Field => ({ kind, required: true });
const can = (kind: Kind | string): Field => ({ kind });
const some = (kind: Kind | string): Field => ({ kind, list: true, required: true });
const list = (kind: Kind | string): Field => ({ kind, list: true });
const map = (kind: Kind | string): Field => ({ kind, map: true });

const flow = { refreshUrl: can(text), scopes: { kind: text, map: true } };

const shapes: Readonly<Record<string, Shape>> = {
  Task: {
    fields: {
      id: must(filled),
      contextId: can(text),
      status: must("TaskStatus"),
      artifacts: list("Artifact"),
      history: list("Message"),
      metadata: can(object),
    },
  },
  TaskStatus: { fields: { state: must(state), message: can("Message"), timestamp: can(timestamp) } },
  Message: {
    fields: {
      messageId: must(filled),
      contextId: can(text),
      taskId: can(text),
      role: must(oneOf("ROLE_USER", "ROLE_AGENT")),
      parts: some("Part"),
      metadata: can(object),
      extensions: list(text),
      referenceTaskIds: list(text),
    },
  },
  Part: {
    fields: {
      text: can(text),
      raw: can(bytes),
      url: can(text),
      data: can(any),
      metadata: can(object),
      filename: can(text),
      mediaType: can(text),
    },
    oneOf: ["text", "raw", "url", "data"],
  },
  Artifact: {
    fields: {
      artifactId: must(filled),
      name: can(text),
      description: can(text),
      parts: some("Part"),
      metadata: can(object),
      extensions: list(text),
    },
  },
  TaskStatusUpdateEvent: {
    fields: { taskId: must(filled), contextId: must(filled), status: must("TaskStatus"), metadata: can(object) },
  },
  TaskArtifactUpdateEvent: {
    fields: {
      taskId: must(filled),
      contextId: must(filled),
      artifact: must("Artifact"),
      append: can(flag),
      lastChunk: can(flag),
      metadata: can(object),
    },
  },
  SendMessageResponse: { fields: { task: can("Task"), message: can("Message") }, oneOf: ["task", "message"] },
  StreamResponse: {
    fields: {
      task: can("Task"),
      message: can("Message"),
      statusUpdate: can("TaskStatusUpdateEvent"),
      artifactUpdate: can("TaskArtifactUpdateEvent"),
    },
    oneOf: ["task", "message", "statusUpdate", "artifactUpdate"],
  },
  ListTasksResponse: {
    fields: {
      tasks: { ...some("Task"), mayBeEmpty: true },
      nextPageToken: must(text),
      pageSize: must(int),
      totalSize: must(int),
    },
  },
  TaskPushNotificationConfig: {
    fields: {
      tenant: can(text),
      id: can(text),
      taskId: can(text),
      url: must(url),
      token: can(text),
      authentication: can("AuthenticationInfo"),
    },
  },
  AuthenticationInfo: { fields: { scheme: must(filled), credentials: can(text) } },
  ListTaskPushNotificationConfigsResponse: {
    fields: { configs: list("TaskPushNotificationConfig"), nextPageToken: can(text) },
  },
  AgentCard: {
    fields: {
      name: must(filled),
      description: must(filled),
      supportedInterfaces: some("AgentInterface"),
      provider: can("AgentProvider"),
      version: must(filled),
      documentationUrl: can(url),
      capabilities: must("AgentCapabilities"),
      securitySchemes: map("SecurityScheme"),
      securityRequirements: list("SecurityRequirement"),
      defaultInputModes: some(filled),
      defaultOutputModes: some(filled),
      skills: { ...some("AgentSkill"), mayBeEmpty: true },
      signatures: list("AgentCardSignature"),
      iconUrl: can(url),
    },
  },
  AgentInterface: {
    fields: {
      url: must(address),
      protocolBinding: must(filled),
      tenant: can(text),
      protocolVersion: must(filled),
    },
  },
  AgentProvider: { fields: { url: must(url), organization: must(filled) } },
  AgentCapabilities: {
    fields: {
      streaming: can(flag),
      pushNotifications: can(flag),
      extensions: list("AgentExtension"),
      extendedAgentCard: can(flag),
    },
  },
  AgentExtension: { fields: { uri: must(filled), description: can(text), required: can(flag), params: can(object) } },
  AgentSkill: {
    fields: {
      id: must(filled),
      name: must(filled),
      description: must(filled),
      tags: { ...some(text), mayBeEmpty: true },
      examples: list(text),
      inputModes: list(text),
      outputModes: list(text),
      securityRequirements: list("SecurityRequirement"),
    },
  },
  AgentCardSignature: { fields: { protected: must(filled), signature: must(filled), header: can(object) } },
  SecurityRequirement: { fields: { schemes: map("StringList") } },
  StringList: { fields: { list: list(text) } },
  SecurityScheme: {
    fields: {
      apiKeySecurityScheme: can("APIKeySecurityScheme"),
      httpAuthSecurityScheme: can("HTTPAuthSecurityScheme"),
      oauth2SecurityScheme: can("OAuth2SecurityScheme"),
      openIdConnectSecurityScheme: can("OpenIdConnectSecurityScheme"),
      mtlsSecurityScheme: can("MutualTlsSecurityScheme"),
    },
    oneOf: [
      "apiKeySecurityScheme",
      "httpAuthSecurityScheme",
      "oauth2SecurityScheme",
      "openIdConnectSecurityScheme",
      "mtlsSecurityScheme",
    ],
  },
  APIKeySecurityScheme: {
    fields: { description: can(text), location: must(oneOf("query", "header", "cookie")), name: must(filled) },
  },
  HTTPAuthSecurityScheme: { fields: { description: can(text), scheme: must(filled), bearerFormat: can(text) } },
  OAuth2SecurityScheme: {
    fields: { description: can(text), flows: must("OAuthFlows"), oauth2MetadataUrl: can(url) },
  },
  OpenIdConnectSecurityScheme: { fields: { description: can(text), openIdConnectUrl: must(url) } },
  MutualTlsSecurityScheme: { fields: { description: can(text) } },
  OAuthFlows: {
    fields: {
      authorizationCode: can("AuthorizationCodeOAuthFlow"),
      clientCredentials: can("ClientCredentialsOAuthFlow"),
      implicit: can(object),
      password: can(object),
      deviceCode: can("DeviceCodeOAuthFlow"),
    },
    oneOf: ["authorizationCode", "clientCredentials", "implicit", "password", "deviceCode"],
  },
  AuthorizationCodeOAuthFlow: {
    fields: { authorizationUrl: must(url), tokenUrl: must(url), ...flow, pkceRequired: can(flag) },
  },
  ClientCredentialsOAuthFlow: { fields: { tokenUrl: must(url), ...flow } },
  DeviceCodeOAuthFlow: { fields: { deviceAuthorizationUrl: must(url), tokenUrl: must(url), ...flow } },
};

export function isShapeName(name: Json): boolean {
  return typeof name === "string" && Object.hasOwn(shapes, name);
}

/** The first place where a value is not what its name says. */
export function shapeProblem(name: string, value: Json | undefined, path = ""): ShapeProblem | undefined {
  const shape = shapes[name];
  if (shape === undefined) throw new Error(`There is no shape of the name ${name}`);
  if (!isMap(value)) return { path, expected: `a ${name}`, value };
  const at = (field: string): string => (path === "" ? field : `${path}.${field}`);
  const spelling = Object.keys(shape.fields).find(
    (field) => field !== snake(field) && Object.hasOwn(value, snake(field)),
  );
  if (spelling !== undefined) {
    return { path: at(snake(spelling)), expected: `the name ${spelling} (§5.5)`, value: value[snake(spelling)] };
  }
  for (const [field, rule] of Object.entries(shape.fields)) {
    const problem = fieldProblem(rule, present(value, field), at(field));
    if (problem !== undefined) return problem;
  }
  // `data` may be null and is there all the same.
  const chosen = shape.oneOf?.filter(
    (field) => Object.hasOwn(value, field) && (value[field] !== null || field === "data"),
  );
  if (chosen === undefined || chosen.length === 1) return undefined;
  return { path, expected: `exactly one of ${(shape.oneOf ?? []).join(", ")}`, value };
}

/** In ProtoJSON null stands for a field that is not set. */
function present(value: Readonly<Record<string, Json>>, field: string): Json | undefined {
  return Object.hasOwn(value, field) && value[field] !== null ? value[field] : undefined;
}

function fieldProblem(rule: Field, value: Json | undefined, path: string): ShapeProblem | undefined {
  if (value === undefined)
    return rule.required === true ? { path, expected: "a value: it is required", value } : undefined;
  if (rule.map === true) {
    if (!isMap(value)) return { path, expected: "an object", value };
    for (const [key, one] of Object.entries(value)) {
      const problem = kindProblem(rule.kind, one, `${path}.${key}`);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  if (rule.list !== true) return kindProblem(rule.kind, value, path);
  if (!Array.isArray(value)) return { path, expected: "an array", value };
  if (value.length === 0 && rule.required === true && rule.mayBeEmpty !== true) {
    return { path, expected: "at least one element: it is required (§5.7)", value };
  }
  for (const [at, one] of (value as readonly Json[]).entries()) {
    const problem = kindProblem(rule.kind, one, `${path}[${at}]`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function kindProblem(kind: Kind | string, value: Json, path: string): ShapeProblem | undefined {
  if (typeof kind === "string") return shapeProblem(kind, value, path);
  const expected = kind(value);
  return expected === undefined ? undefined : { path, expected, value };
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
