/*
 * The members of a card as data, for the canonical form (A2A 1.0 §8.4.1, §5.7). The members follow specification/a2a.proto for 1.0, and the
 * TypeScript types of the specification for 0.3.
 */

/**
 * When the canonical form includes a member.
 * - `required`: always, even with a default value (`REQUIRED` in the proto).
 * - `optional`: whenever it was set (`optional` in the proto).
 * - `implicit`: unless it has the default value.
 */
export type Presence = "required" | "optional" | "implicit";

/** The type of a member. `any` is JSON that stays unchanged. */
export type Shape =
  | "text"
  | "flag"
  | "texts"
  | "any"
  | { readonly object: Members }
  | { readonly list: Members }
  | { readonly map: Members | "text" | "any" };

/** The members of an object, by their names. */
export type Members = Readonly<Record<string, readonly [Presence, Shape]>>;

const text: readonly [Presence, Shape] = ["implicit", "text"];
const requiredText: readonly [Presence, Shape] = ["required", "text"];
const optionalText: readonly [Presence, Shape] = ["optional", "text"];
const flag: readonly [Presence, Shape] = ["implicit", "flag"];
const optionalFlag: readonly [Presence, Shape] = ["optional", "flag"];
const texts: readonly [Presence, Shape] = ["implicit", "texts"];
const requiredTexts: readonly [Presence, Shape] = ["required", "texts"];
const any: readonly [Presence, Shape] = ["optional", "any"];
const one = (object: Members, presence: Presence = "optional") => [presence, { object }] as const;
const list = (of: Members, presence: Presence = "implicit") => [presence, { list: of }] as const;
const map = (of: Members | "text" | "any", presence: Presence = "implicit") => [presence, { map: of }] as const;

const requirements = list({ schemes: map({ list: texts }) });
const scopes = map("text", "required");

const flows: Members = {
  authorizationCode: one({
    authorizationUrl: requiredText,
    tokenUrl: requiredText,
    refreshUrl: text,
    scopes,
    pkceRequired: flag,
  }),
  clientCredentials: one({ tokenUrl: requiredText, refreshUrl: text, scopes }),
  implicit: one({ authorizationUrl: text, refreshUrl: text, scopes: map("text") }),
  password: one({ tokenUrl: text, refreshUrl: text, scopes: map("text") }),
  deviceCode: one({ deviceAuthorizationUrl: requiredText, tokenUrl: requiredText, refreshUrl: text, scopes }),
};

const scheme: Members = {
  apiKeySecurityScheme: one({ description: text, location: requiredText, name: requiredText }),
  httpAuthSecurityScheme: one({ description: text, scheme: requiredText, bearerFormat: text }),
  oauth2SecurityScheme: one({ description: text, flows: one(flows, "required"), oauth2MetadataUrl: text }),
  openIdConnectSecurityScheme: one({ description: text, openIdConnectUrl: requiredText }),
  mtlsSecurityScheme: one({ description: text }),
};

/** A card of 1.0. */
export const cardV1: Members = {
  name: requiredText,
  description: requiredText,
  supportedInterfaces: list(
    { url: requiredText, protocolBinding: requiredText, tenant: text, protocolVersion: requiredText },
    "required",
  ),
  provider: one({ url: requiredText, organization: requiredText }),
  version: requiredText,
  documentationUrl: optionalText,
  capabilities: one(
    {
      streaming: optionalFlag,
      pushNotifications: optionalFlag,
      extensions: list({ uri: text, description: text, required: flag, params: any }),
      extendedAgentCard: optionalFlag,
    },
    "required",
  ),
  securitySchemes: map(scheme),
  securityRequirements: requirements,
  defaultInputModes: requiredTexts,
  defaultOutputModes: requiredTexts,
  skills: list(
    {
      id: requiredText,
      name: requiredText,
      description: requiredText,
      tags: requiredTexts,
      examples: texts,
      inputModes: texts,
      outputModes: texts,
      securityRequirements: requirements,
    },
    "required",
  ),
  iconUrl: optionalText,
};

const setList = (of: Members) => list(of, "optional");
const flowV03 = one({ authorizationUrl: any, tokenUrl: any, refreshUrl: any, scopes: any });

/** A card of 0.3, whose members are either required or optional. */
export const cardV03: Members = {
  protocolVersion: any,
  name: requiredText,
  description: requiredText,
  url: requiredText,
  preferredTransport: any,
  additionalInterfaces: setList({ url: any, transport: any }),
  iconUrl: any,
  provider: one({ organization: any, url: any }),
  version: requiredText,
  documentationUrl: any,
  capabilities: one({
    streaming: any,
    pushNotifications: any,
    stateTransitionHistory: any,
    extensions: setList({ uri: any, description: any, required: any, params: any }),
  }),
  securitySchemes: map(
    {
      type: any,
      description: any,
      in: any,
      name: any,
      scheme: any,
      bearerFormat: any,
      flows: one({ authorizationCode: flowV03, clientCredentials: flowV03, implicit: flowV03, password: flowV03 }),
      oauth2MetadataUrl: any,
      openIdConnectUrl: any,
    },
    "optional",
  ),
  security: any,
  defaultInputModes: requiredTexts,
  defaultOutputModes: requiredTexts,
  skills: list(
    {
      id: requiredText,
      name: requiredText,
      description: requiredText,
      tags: requiredTexts,
      examples: any,
      inputModes: any,
      outputModes: any,
      security: any,
    },
    "required",
  ),
  supportsAuthenticatedExtendedCard: any,
};
