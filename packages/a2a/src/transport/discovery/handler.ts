import { withoutQuery, type Logger, type Clock } from "../../base/index.ts";
import {
  A2AError,
  type AgentCapabilities,
  type AgentCard,
  type AgentExtension,
  type AgentInterface,
  type SecurityRequirement,
  type SecurityScheme,
} from "../../model/index.ts";
import { isObject } from "../../model/schema.ts";
import type { UniversalResponse, AgentDescription, UniversalRequest } from "../../protocol/index.ts";
import { byVersion, type Codec } from "../../wire/codec.ts";
import { returned, type AgentAddress, type HttpEndpoint, type ServerBinding } from "../server/binding.ts";
import { requestedVersion } from "../server/request.ts";
import {
  errorResponse,
  failureOf,
  type WireError,
  answerWith,
  writeDocument,
  type Document,
  type Headers,
} from "../server/response.ts";

/* Cards: their content, their paths, and the endpoint that serves them. */

/** Path of a card below a base (A2A 1.0 §8.2). */
export const cardPath = "/.well-known/agent-card.json";

/** All paths of a card below a base, for the agent of a tenant or the agent without a tenant. */
export function cardPathsOf(tenant: string | undefined, codecs: readonly Codec[]): readonly string[] {
  const prefix = tenant === undefined ? "" : `/${encodeURIComponent(tenant)}`;
  const paths = new Set([cardPath, ...codecs.flatMap((codec) => codec.cardPaths ?? [])]);
  return [...paths].map((path) => prefix + path);
}

/**
 * Serves a card with a strong `ETag`, `Last-Modified` and `Cache-Control`, and answers 304 if the client already has it (A2A 1.0
 * §8.6). A request that names a version gets the card of that version. Other requests get a card with the members of all
 * versions. Clients of every version can read that card, because they ignore unknown members. Without a `gate`, callers need no
 * credentials.
 */
export function cardEndpoint(
  load: () => AgentCard | Promise<AgentCard>,
  codecs: readonly [Codec, ...Codec[]],
  options: DocumentOptions & { readonly logger: Logger },
  gate?: CardGate,
): HttpEndpoint {
  const named = byVersion(codecs);
  const cached = cacheHeaders(options, gate);
  const vary = [...(codecs.length > 1 ? ["A2A-Version"] : []), ...(gate?.vary ?? [])].join(", ");
  const documents = new Map<Codec | undefined, Promise<Document>>();
  const documentOf = (codec: Codec | undefined) => {
    const known = documents.get(codec);
    if (known !== undefined) return known;
    const write = async (): Promise<Document> => {
      const card = await load();
      const written: readonly unknown[] = (codec === undefined ? codecs : [codec]).map((each) => each.encodeCard(card));
      return writeDocument(written.reduce(merge), {
        "content-type": "application/json",
        ...cached,
        ...(vary !== "" && { vary }),
      });
    };
    const document = write();
    documents.set(codec, document);
    // Does not cache a failure.
    document.catch(() => documents.delete(codec));
    return document;
  };
  return {
    async answer(request, { query }) {
      const refusal = refuseToWrite(request, codecs[0], "A card");
      if (refusal !== undefined) return refusal;
      const version = codecs.length > 1 ? requestedVersion(request, query) : undefined;
      try {
        await gate?.check(request);
        return answerWith(await documentOf(named.get(version ?? "")), request);
      } catch (thrown) {
        // The query may contain a credential.
        const failure = failureOf(thrown, options.logger, { url: withoutQuery(request.url) }, () => false);
        return errorResponse(codecs[0], failure);
      }
    },
  };
}

/** The answer at a path without a binding and without a card. */
export function notFound(codec: Codec): UniversalResponse {
  return errorResponse(codec, new A2AError("MethodNotFound", "Nothing is served at this path") as WireError);
}

/** Merges two JSON values. If they conflict, the first value takes precedence. */
function merge(one: unknown, other: unknown): unknown {
  if (Array.isArray(one) && Array.isArray(other) && one.length === other.length) {
    return one.map((item, at) => merge(item, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return one;
  const both = Object.entries(other).map(([name, value]) => [name, name in one ? merge(one[name], value) : value]);
  return Object.assign({}, one, Object.fromEntries(both));
}

/** Data that the server adds to an agent's description (A2A 1.0 §4.4.1). */
export interface CardHost {
  /** The addresses of the agent, from `interfacesOf`. */
  readonly interfaces: readonly AgentInterface[];
  /** How callers authenticate. The agent's own requirements replace these. */
  readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>;
  readonly securityRequirements?: readonly SecurityRequirement[];
  /** Whether the server delivers webhooks (A2A 1.0 §4.3). The agent may declare that it has no webhooks. */
  readonly pushNotifications?: boolean;
  /** Whether authenticated callers get an extended card (A2A 1.0 §3.1.11). */
  readonly extendedCard?: boolean;
  /** Extensions of the server. */
  readonly extensions?: readonly AgentExtension[];
}

const textOnly = ["text/plain"];

/** The card of an agent at this server. */
export function buildCard(
  agent: Omit<AgentDescription, "capabilities"> & { readonly capabilities?: AgentCapabilities },
  host: CardHost,
): AgentCard {
  const capabilities = {
    streaming: true,
    ...(host.pushNotifications === true && { pushNotifications: true }),
    ...agent.capabilities,
    ...(host.extendedCard === true && { extendedAgentCard: true }),
  };
  const extensions = [...(capabilities.extensions ?? []), ...(host.extensions ?? [])];
  const securitySchemes = { ...host.securitySchemes, ...agent.securitySchemes };
  const securityRequirements = agent.securityRequirements ?? host.securityRequirements ?? [];
  return {
    name: agent.name,
    description: agent.description,
    supportedInterfaces: host.interfaces,
    ...(agent.provider !== undefined && { provider: agent.provider }),
    version: agent.version,
    ...(agent.documentationUrl !== undefined && { documentationUrl: agent.documentationUrl }),
    capabilities: { ...capabilities, ...(extensions.length > 0 && { extensions }) },
    ...(Object.keys(securitySchemes).length > 0 && { securitySchemes }),
    ...(securityRequirements.length > 0 && { securityRequirements }),
    defaultInputModes: agent.defaultInputModes ?? textOnly,
    defaultOutputModes: agent.defaultOutputModes ?? textOnly,
    skills: agent.skills,
    ...(agent.iconUrl !== undefined && { iconUrl: agent.iconUrl }),
  };
}

/**
 * The interfaces of an agent, one per version and binding, sorted by version and then by binding, preferred entries first
 * (A2A 1.0 §8.3.1).
 *
 * @param paths - Paths of the bindings below the agent's base, by their names.
 */
export function interfacesOf(
  bindings: readonly ServerBinding[],
  codecs: readonly Codec[],
  agent: Omit<AgentAddress, "path">,
  paths: Readonly<Record<string, string>> = {},
): readonly AgentInterface[] {
  return codecs.flatMap((codec) =>
    bindings.flatMap((binding) =>
      returned(
        binding.name,
        "interfaces",
        () => binding.interfaces({ ...agent, path: paths[binding.name] ?? "" }, codec),
        areAddresses,
        'a list of addresses, such as [{ url: "https://agents.example.com" }]',
      ).map(({ url, tenant }) => ({
        url,
        protocolBinding: binding.name,
        ...(tenant !== undefined && { tenant }),
        protocolVersion: codec.version,
      })),
    ),
  );
}

function areAddresses(value: unknown): boolean {
  const isAddress = (one: unknown): boolean =>
    isObject(one) && typeof one["url"] === "string" && /^(?:undefined|string)$/.test(typeof one["tenant"]);
  return Array.isArray(value) && value.every(isAddress);
}

/* Public documents, such as cards, are JSON that clients GET and may cache. */

/** Options for serving a document. */
export interface DocumentOptions {
  /** How long a client may cache the document, in seconds. */
  readonly maxAge: number;
  /** The clock for `Last-Modified`, which is the time at which the endpoint was created. */
  readonly clock: Clock;
}

/** Decides which callers may read a document. */
export interface CardGate {
  /** Headers with the readers' credentials. */
  readonly vary: readonly string[];
  /**
   * Resolves if the sender may read. Audits rejections, except for entries of a list (`isListed`). Throws `Unauthenticated`, `PermissionDenied`
   * or `TooManyRequests`.
   */
  check(request: UniversalRequest, isListed?: boolean): Promise<void>;
}

/** `Cache-Control` and `Last-Modified` of a document. Behind a gate, shared caches must not store it. */
export function cacheHeaders({ maxAge, clock }: DocumentOptions, gate?: CardGate): Headers {
  return {
    "cache-control": gate === undefined ? `public, max-age=${maxAge}` : "private, no-cache",
    "last-modified": new Date(clock.now()).toUTCString(),
  };
}

const allow = "GET, HEAD";

/** The error for methods other than GET and HEAD, or `undefined`. `what` is the subject of the message, such as `A card`. */
export function refuseToWrite({ method }: UniversalRequest, codec: Codec, what: string): UniversalResponse | undefined {
  if (method === "GET" || method === "HEAD") return undefined;
  return errorResponse(codec, new A2AError("MethodNotAllowed", `${what} takes ${allow}`) as WireError, allow);
}

/** A document that a server publishes at a single path, in addition to its cards. */
export interface PublicDocument {
  /** The path, relative to the path of `publicUrl`. */
  readonly path: string;
  /** The subject of messages about the document, such as `A key set`. */
  readonly name: string;
  readonly mediaType: string;
  /** Loads the document once. A failed load is retried. */
  load(): Promise<unknown>;
}

/** Serves a document. */
export function documentEndpoint(
  { name, mediaType, load }: PublicDocument,
  codec: Codec,
  options: DocumentOptions & { readonly logger: Logger },
): HttpEndpoint {
  const headers = { "content-type": mediaType, ...cacheHeaders(options) };
  let written: Promise<Document> | undefined;
  return {
    async answer(request) {
      const refusal = refuseToWrite(request, codec, name);
      if (refusal !== undefined) return refusal;
      try {
        written ??= load().then((value) => writeDocument(value, headers));
        return answerWith(await written, request);
      } catch (thrown) {
        written = undefined;
        return errorResponse(
          codec,
          failureOf(thrown, options.logger, { url: withoutQuery(request.url) }, () => false),
        );
      }
    },
  };
}
