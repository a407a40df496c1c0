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
  type Schema,
} from "../model/schema.ts";

/* A card of 0.3 to the letter (0.3 §5.5). Clients read it more leniently. */

type Scopes = Readonly<Record<string, string>>;
type Requirements = readonly Readonly<Record<string, readonly string[]>>[];

const scopes: Schema<Scopes> = record(string);
const requirements: Schema<Requirements> = list(record(strings));

interface Flow {
  readonly authorizationUrl: string;
  readonly tokenUrl: string;
  readonly refreshUrl?: string;
  readonly scopes: Scopes;
}
const around = { refreshUrl: optional(string), scopes: required(scopes) };
const authorizationUrl = required(filled);
const tokenUrl = required(filled);
const atToken = object<Omit<Flow, "authorizationUrl">>({ tokenUrl, ...around });

interface Flows {
  readonly authorizationCode?: Flow;
  readonly clientCredentials?: Omit<Flow, "authorizationUrl">;
  readonly implicit?: Omit<Flow, "tokenUrl">;
  readonly password?: Omit<Flow, "authorizationUrl">;
}
const flows = object<Flows>({
  authorizationCode: optional(object<Flow>({ authorizationUrl, tokenUrl, ...around })),
  clientCredentials: optional(atToken),
  implicit: optional(object<Omit<Flow, "tokenUrl">>({ authorizationUrl, ...around })),
  password: optional(atToken),
});

interface Kind {
  readonly description?: string;
}
const description = optional(string);

/** The members of each type of scheme. */
const kinds: Readonly<Record<string, Schema<unknown>>> = {
  apiKey: object<Kind & { readonly in: string; readonly name: string }>({
    description,
    in: required(oneName(["query", "header", "cookie"])),
    name: required(filled),
  }),
  http: object<Kind & { readonly scheme: string; readonly bearerFormat?: string }>({
    description,
    scheme: required(filled),
    bearerFormat: optional(string),
  }),
  oauth2: object<Kind & { readonly flows: Flows; readonly oauth2MetadataUrl?: string }>({
    description,
    flows: required(flows),
    oauth2MetadataUrl: optional(string),
  }),
  openIdConnect: object<Kind & { readonly openIdConnectUrl: string }>({
    description,
    openIdConnectUrl: required(filled),
  }),
  mutualTLS: object<Kind>({ description }),
};

const typed = object<{ readonly type: string }>({ type: required(oneName(Object.keys(kinds))) });

const scheme: Schema<unknown> = (value, state) => {
  const type = isObject(value) ? value["type"] : undefined;
  const kind = typeof type === "string" && Object.hasOwn(kinds, type) ? kinds[type] : undefined;
  return (kind ?? typed)(value, state);
};

interface Skill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly examples?: readonly string[];
  readonly inputModes?: readonly string[];
  readonly outputModes?: readonly string[];
  readonly security?: Requirements;
}

interface Extension {
  readonly uri: string;
  readonly description?: string;
  readonly required?: boolean;
  readonly params?: object;
}

interface Capabilities {
  readonly streaming?: boolean;
  readonly pushNotifications?: boolean;
  readonly stateTransitionHistory?: boolean;
  readonly extensions?: readonly Extension[];
}

interface Card {
  readonly protocolVersion?: string;
  readonly name: string;
  readonly description: string;
  readonly url: string;
  readonly preferredTransport?: string;
  readonly additionalInterfaces?: readonly { readonly url: string; readonly transport: string }[];
  readonly iconUrl?: string;
  readonly provider?: { readonly organization: string; readonly url: string };
  readonly version: string;
  readonly documentationUrl?: string;
  readonly capabilities: Capabilities;
  readonly securitySchemes?: Readonly<Record<string, unknown>>;
  readonly security?: Requirements;
  readonly defaultInputModes: readonly string[];
  readonly defaultOutputModes: readonly string[];
  readonly skills: readonly Skill[];
  readonly supportsAuthenticatedExtendedCard?: boolean;
  readonly signatures?: readonly { readonly protected: string; readonly signature: string; readonly header?: object }[];
}

/** Checks a card of 0.3. `protocolVersion` may be absent, as in cards of 0.2.5. */
export const strictCardV03: Schema<Card> = object<Card>({
  protocolVersion: optional(filled),
  name: required(filled),
  description: required(filled),
  url: required(filled),
  preferredTransport: optional(filled),
  additionalInterfaces: optional(
    list(
      object<{ readonly url: string; readonly transport: string }>({
        url: required(filled),
        transport: required(filled),
      }),
    ),
  ),
  iconUrl: optional(string),
  provider: optional(
    object<{ readonly organization: string; readonly url: string }>({
      organization: required(filled),
      url: required(filled),
    }),
  ),
  version: required(filled),
  documentationUrl: optional(string),
  capabilities: required(
    object<Capabilities>({
      streaming: optional(boolean),
      pushNotifications: optional(boolean),
      stateTransitionHistory: optional(boolean),
      extensions: optional(
        list(
          object<Extension>({
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
      object<Skill>({
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
    list(
      object<{ readonly protected: string; readonly signature: string; readonly header?: object }>({
        protected: required(filled),
        signature: required(filled),
        header: optional(struct),
      }),
    ),
  ),
});
