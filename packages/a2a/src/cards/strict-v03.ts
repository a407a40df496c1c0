import { isObject, type Field, type Schema } from "../model/schema.ts";
import * as s from "../model/schema.ts";

/* The strict schema of a 0.3 card (0.3 §5.5). Clients read cards leniently. */

/** The schema of an object with these members. The object needs no TypeScript type, because only violations are read. */
const members = (fields: Readonly<Record<string, Field<unknown>>>): Schema<unknown> =>
  // oxlint-disable-next-line no-unnecessary-type-assertion -- The compiler needs it.
  s.object(fields as s.Fields<unknown>);

const scopes = s.record(s.string);
const requirementsV03 = s.list(s.record(s.strings));

const around = { refreshUrl: s.optional(s.string), scopes: s.required(scopes) };
const authorizationUrl = s.required(s.filled);
const tokenUrl = s.required(s.filled);
const atToken = members({ tokenUrl, ...around });

const flows = members({
  authorizationCode: s.optional(members({ authorizationUrl, tokenUrl, ...around })),
  clientCredentials: s.optional(atToken),
  implicit: s.optional(members({ authorizationUrl, ...around })),
  password: s.optional(atToken),
});

const description = s.optional(s.string);

const kinds: Readonly<Record<string, Schema<unknown>>> = {
  apiKey: members({
    description,
    in: s.required(s.oneName(["query", "header", "cookie"])),
    name: s.required(s.filled),
  }),
  http: members({ description, scheme: s.required(s.filled), bearerFormat: s.optional(s.string) }),
  oauth2: members({ description, flows: s.required(flows), oauth2MetadataUrl: s.optional(s.string) }),
  openIdConnect: members({ description, openIdConnectUrl: s.required(s.filled) }),
  mutualTLS: members({ description }),
};

const typed = members({ type: s.required(s.oneName(Object.keys(kinds))) });

const scheme: Schema<unknown> = (value, state) => {
  const type = isObject(value) ? value["type"] : undefined;
  const kind = typeof type === "string" && Object.hasOwn(kinds, type) ? kinds[type] : undefined;
  return (kind ?? typed)(value, state);
};

/** Checks a card of 0.3. `protocolVersion` may be absent, because cards of 0.2.5 lack this member. */
export const strictCardV03: Schema<unknown> = members({
  protocolVersion: s.optional(s.filled),
  name: s.required(s.filled),
  description: s.required(s.filled),
  url: s.required(s.filled),
  preferredTransport: s.optional(s.filled),
  additionalInterfaces: s.optional(s.list(members({ url: s.required(s.filled), transport: s.required(s.filled) }))),
  iconUrl: s.optional(s.string),
  provider: s.optional(members({ organization: s.required(s.filled), url: s.required(s.filled) })),
  version: s.required(s.filled),
  documentationUrl: s.optional(s.string),
  capabilities: s.required(
    members({
      streaming: s.optional(s.boolean),
      pushNotifications: s.optional(s.boolean),
      stateTransitionHistory: s.optional(s.boolean),
      extensions: s.optional(
        s.list(
          members({
            uri: s.required(s.filled),
            description: s.optional(s.string),
            required: s.optional(s.boolean),
            params: s.optional(s.struct),
          }),
        ),
      ),
    }),
  ),
  securitySchemes: s.optional(s.record(scheme)),
  security: s.optional(requirementsV03),
  defaultInputModes: s.required(s.strings),
  defaultOutputModes: s.required(s.strings),
  skills: s.required(
    s.list(
      members({
        id: s.required(s.filled),
        name: s.required(s.filled),
        description: s.required(s.filled),
        tags: s.required(s.strings),
        examples: s.optional(s.strings),
        inputModes: s.optional(s.strings),
        outputModes: s.optional(s.strings),
        security: s.optional(requirementsV03),
      }),
    ),
  ),
  supportsAuthenticatedExtendedCard: s.optional(s.boolean),
  signatures: s.optional(
    s.list(members({ protected: s.required(s.filled), signature: s.required(s.filled), header: s.optional(s.struct) })),
  ),
});
