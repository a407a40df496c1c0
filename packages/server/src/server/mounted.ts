import type { Authenticator } from "@parley/a2a/internal/auth/index";
import type { AgentExtension } from "@parley/a2a/internal/model/index";
import { declarationsOf } from "@parley/a2a/internal/extensions/activation";
import {
  idempotentSendExtension,
  inlineFilesExtension,
  resumeExtension,
  type AnyExtension,
} from "@parley/a2a/internal/protocol/index";
import { buildCard, cardPath, interfacesOf } from "@parley/a2a/internal/transport/discovery/handler";
import { mapValues, withoutSlashes } from "@parley/a2a/internal/base/index";
import type { InterfacePaths } from "@parley/a2a/internal/transport/router/claims";
import { cannotServe, type ServerBinding } from "@parley/a2a/internal/transport/server/binding";
import { webhooksExtension, type WebhooksParams } from "@parley/a2a/internal/webhooks/names";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import type { AgentMount, HostedCard, HostedService, ServedAgent } from "./options.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/** The common data of all agents of a server. */
export interface ServedBy {
  /** The public URL, without a slash at its end. */
  readonly publicUrl: string;
  readonly bindings: readonly ServerBinding[];
  /** One codec for each protocol version on cards. */
  readonly codecs: readonly Codec[];
  readonly authenticator?: Authenticator | undefined;
  /** Extensions that every card declares, in addition to its agent's. */
  readonly extensions: readonly AnyExtension[];
  /** Whether a repeated message gets the answer of the first one. Default false. */
  readonly dedupes?: boolean;
  /** How webhooks are signed. Absent: callers cannot register any. */
  readonly push?: WebhooksParams | undefined;
  /** Whether large files are outside of the database, and answers have links to them. Default false. */
  readonly blobs?: boolean;
}

export interface MountedAgent extends ServedAgent {
  readonly mount: AnyMount;
  /** The agent's own part of the card. */
  readonly description: HostedCard;
  /** The agent's name in bindings without paths. */
  readonly label: string | undefined;
}

/** A mount of either kind. */
export type AnyMount = AgentMount | HostedService;

/** Whether the engine runs an agent. */
export function isRun(mount: AnyMount): mount is AgentMount {
  return "agent" in mount;
}

/** Builds the card of an agent, and its addresses. */
export function mountedAgent(mount: AnyMount, by: ServedBy): MountedAgent {
  const { path = "", tenant, id } = mount;
  const { authenticator } = by;
  const description: HostedCard = isRun(mount) ? mount.agent : mount.card;
  const extendedCard = isRun(mount) ? mount.extendedCard : undefined;
  // The type forbids `true` without `push`, but JavaScript callers can pass it.
  if (isRun(mount) && by.push === undefined && description.capabilities?.pushNotifications === true) {
    throw cannotServe(
      "capabilities.pushNotifications",
      "cannot be true, because this server sends none. Set `push: true`",
    );
  }
  if (extendedCard !== undefined && authenticator === undefined) {
    throw cannotServe(
      "extendedCard",
      "needs an authenticator, because only authenticated callers may read it (A2A 1.0 §3.1.11). Set `authenticator`",
    );
  }
  const url = by.publicUrl + withoutSlashes(path);
  const label = labelOf(mount);
  const address = { url, ...defined({ tenant, label }) };
  const card = buildCard(description, {
    interfaces: interfacesOf(by.bindings, by.codecs, address, tidy(mount.interfaces)),
    ...(authenticator !== undefined && {
      securitySchemes: authenticator.securitySchemes,
      securityRequirements: authenticator.securityRequirements,
    }),
    pushNotifications: isRun(mount) && by.push !== undefined,
    extendedCard: extendedCard !== undefined,
    extensions: isRun(mount) ? extensionsOf(mount, by) : [],
  });
  const prefix = tenant === undefined ? "" : `/${encodeURIComponent(tenant)}`;
  return {
    id: id ?? `${withoutSlashes(path) || "/"}${prefix}`,
    url,
    ...defined({ tenant }),
    cardUrl: `${url}${prefix}${cardPath}`,
    card,
    mount,
    description,
    label,
  };
}

/** Extensions that the server implements, each with the setting that makes this impossible. */
const promises: readonly (readonly [string, string])[] = [
  [resumeExtension, "of an agent that does not stream (`capabilities.streaming`)"],
  [idempotentSendExtension, "with `dedupe: false`"],
];

/** The extensions that this server adds to the card. */
function extensionsOf(
  { agent }: AgentMount,
  { dedupes = false, push, blobs = false, extensions: hooked }: ServedBy,
): readonly AgentExtension[] {
  const extensions: AgentExtension[] = [];
  if (agent.capabilities?.streaming ?? true) {
    extensions.push({ uri: resumeExtension, description: "Streams continue after Last-Event-ID" });
  }
  if (dedupes) {
    extensions.push({
      uri: idempotentSendExtension,
      description: "A send repeated with its messageId and content joins the first one",
    });
  }
  if (blobs) {
    extensions.push({
      uri: inlineFilesExtension,
      description: "Large files are links, or bytes if the request demands them",
    });
  }
  if (push !== undefined && agent.capabilities?.pushNotifications !== false) {
    extensions.push({ uri: webhooksExtension, description: "Webhooks are signed", params: { ...push } });
  }
  const isList: boolean = Array.isArray(hooked);
  if (!isList) throw cannotServe("extensions", "must be a list, such as [timestamp]");
  const declared = new Set(agent.capabilities?.extensions?.map(({ uri }) => uri));
  const given = declarationsOf(new Set([...(agent.extensions ?? []), ...hooked]));
  const named = new Set(given.map(({ uri }) => uri));
  const kept = new Set(extensions.map(({ uri }) => uri));
  for (const [uri, without] of promises) {
    if (kept.has(uri) || !(named.has(uri) || declared.has(uri))) continue;
    throw cannotServe("extensions", `cannot promise ${uri} ${without}`);
  }
  // Declarations in the agent's capabilities take precedence over those of extension objects.
  return [...extensions.filter(({ uri }) => !named.has(uri)), ...given.filter(({ uri }) => !declared.has(uri))];
}

function labelOf({ path = "", tenant }: AnyMount): string | undefined {
  const label = [withoutSlashes(path).slice(1), tenant ?? ""].filter((part) => part !== "").join("/");
  return label === "" ? undefined : label;
}

/** Paths without slashes at their ends. */
export function tidy(paths: InterfacePaths = {}): InterfacePaths {
  return mapValues(paths, withoutSlashes);
}
