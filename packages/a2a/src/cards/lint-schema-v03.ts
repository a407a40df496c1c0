import {
  boolean,
  filled,
  isObject,
  list,
  object,
  oneName,
  optional,
  record,
  required,
  string,
  strings,
  struct,
  type Field,
  type Fields,
  type Schema,
} from "../model/schema.ts";

/* The strict schema of a 0.3 card (0.3 §5.5). Clients read cards leniently. */

/** An object with these members. It needs no TypeScript type, because only violations are read. */
function members(fields: Readonly<Record<string, Field<unknown>>>): Schema<unknown> {
  return object(fields as Fields<unknown>);
}

const scopes = record(string);
const requirements = list(record(strings));

const around = { refreshUrl: optional(string), scopes: required(scopes) };
const authorizationUrl = required(filled);
const tokenUrl = required(filled);
const atToken = members({ tokenUrl, ...around });

const flows = members({
  authorizationCode: optional(members({ authorizationUrl, tokenUrl, ...around })),
  clientCredentials: optional(atToken),
  implicit: optional(members({ authorizationUrl, ...around })),
  password: optional(atToken),
});

const description = optional(string);

const kinds: Readonly<Record<string, Schema<unknown>>> = {
  apiKey: members({ description, in: required(oneName(["query", "header", "cookie"])), name: required(filled) }),
  http: members({ description, scheme: required(filled), bearerFormat: optional(string) }),
  oauth2: members({ description, flows: required(flows), oauth2MetadataUrl: optional(string) }),
  openIdConnect: members({ description, openIdConnectUrl: required(filled) }),
  mutualTLS: members({ description }),
};

const typed = members({ type: required(oneName(Object.keys(kinds))) });

const scheme: Schema<unknown> = (value, state) => {
  const type = isObject(value) ? value["type"] : undefined;
  const kind = typeof type === "string" && Object.hasOwn(kinds, type) ? kinds[type] : undefined;
  return (kind ?? typed)(value, state);
};

/** Checks a card of 0.3. `protocolVersion` may be absent, as in cards of 0.2.5. */
export const strictCardV03: Schema<unknown> = members({
  protocolVersion: optional(filled),
  name: required(filled),
  description: required(filled),
  url: required(filled),
  preferredTransport: optional(filled),
  additionalInterfaces: optional(list(members({ url: required(filled), transport: required(filled) }))),
  iconUrl: optional(string),
  provider: optional(members({ organization: required(filled), url: required(filled) })),
  version: required(filled),
  documentationUrl: optional(string),
  capabilities: required(
    members({
      streaming: optional(boolean),
      pushNotifications: optional(boolean),
      stateTransitionHistory: optional(boolean),
      extensions: optional(
        list(
          members({
            uri: required(filled),
            description: optional(string),
            required: optional(boolean),
            params: optional(struct),
          }),
        ),
      ),
    }),
  ),
  securitySchemes: optional(record(scheme)),
  security: optional(requirements),
  defaultInputModes: required(strings),
  defaultOutputModes: required(strings),
  skills: required(
    list(
      members({
        id: required(filled),
        name: required(filled),
        description: required(filled),
        tags: required(strings),
        examples: optional(strings),
        inputModes: optional(strings),
        outputModes: optional(strings),
        security: optional(requirements),
      }),
    ),
  ),
  supportsAuthenticatedExtendedCard: optional(boolean),
  signatures: optional(
    list(members({ protected: required(filled), signature: required(filled), header: optional(struct) })),
  ),
});
