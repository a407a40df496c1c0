import { silentLogger, systemClock, withoutSlashes, type Clock, type Logger } from "@parley/a2a/internal/base/index";
import {
  safeAudit,
  safeObserver,
  type AnyExtension,
  type Audit,
  type Observer,
} from "@parley/a2a/internal/protocol/index";
import { checkBindings } from "@parley/a2a/internal/transport/router/router";
import { cannotServe, type ServerBinding } from "@parley/a2a/internal/transport/server/binding";
import type { CorsOptions } from "@parley/a2a/internal/transport/server/origins";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import { cardSignerOf, type CardSigner } from "./cards.ts";
import { checkCallers, checkLimits, checkRoutes } from "./checks.ts";
import type { HandlerOptions, HostLimits, HostOptions } from "./options.ts";
import { refusalLog, type RefusalLog } from "./refusals.ts";
import { OpenWork } from "./open-work.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/* The first stage of a host: checks its options, and adds defaults. */

/** The bindings and versions that a host can speak. */
export interface Spoken {
  /** The default of the option `bindings`. */
  readonly bindings: readonly ServerBinding[];
  /** The versions by their names. */
  readonly wires: Readonly<Record<string, Codec>>;
  /** The drafts based on these versions. */
  draftsOf(codecs: readonly Codec[]): readonly Codec[];
}

/** The checked options of a host, with defaults. */
export interface HostSettings {
  readonly options: HostOptions;
  /** The public URL, without a slash at its end. */
  readonly publicUrl: string;
  /** The prefix of each path that the host answers. */
  readonly basePath: string;
  readonly bindings: readonly ServerBinding[];
  /** The versions that cards name. */
  readonly codecs: readonly [Codec, ...Codec[]];
  /** The versions of `codecs`, and their drafts. */
  readonly spoken: readonly [Codec, ...Codec[]];
  /** Every known version. The server may support more of them later. */
  readonly known: readonly Codec[];
  readonly extensions: readonly AnyExtension[];
  readonly limits: HostLimits & Required<Pick<HostLimits, "answerBytes" | "bodyBytes" | "depth">>;
  readonly signer: CardSigner | undefined;
  readonly observer: Observer | undefined;
  readonly audit: Audit | undefined;
  /** The log of rejected requests. `undefined`: nothing is logged. */
  readonly refusals: RefusalLog | undefined;
  /** Receives records of rejected callers, for `audit` and the log. */
  readonly onRefused: Audit | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Aborted when the host begins to close. */
  readonly closing: AbortController;
  /** The open work that a closing host waits for, in addition to its engine. */
  readonly open: OpenWork;
}

/**
 * Checks the options of a host, and adds their defaults.
 *
 * @throws A2AError `InvalidParams`, which names the option.
 */
export function hostSettings(
  options: HostOptions & Partial<Pick<HandlerOptions, "ownerOf">>,
  spoken: Spoken,
): HostSettings {
  const { logger = silentLogger, clock = systemClock, bindings = spoken.bindings, extensions = [] } = options;
  checkLimits(options.limits);
  checkCallers(options);
  checkBindings(bindings);
  if (options.routes !== undefined && typeof options.routes !== "function") checkRoutes(options.routes);
  const url = readPublicUrl(options.publicUrl);
  const publicUrl = withoutSlashes(url.href);
  const basePath = withoutSlashes(options.basePath ?? url.pathname);
  const codecs = codecsOf(spoken.wires, options.versions);
  const audit = options.audit && safeAudit(options.audit, logger);
  const refusals = refusalLog(logger, clock, url.href);
  return {
    options,
    publicUrl,
    basePath,
    bindings,
    codecs,
    spoken: [...codecs, ...spoken.draftsOf(codecs)],
    known: Object.values(spoken.wires),
    extensions,
    limits: { bodyBytes: 10 << 20, depth: 64, answerBytes: 128 << 20, ...defined(options.limits ?? {}) },
    signer: cardSignerOf(options.signCards, { publicUrl, basePath, codecs }),
    observer: options.observer && safeObserver(options.observer, logger),
    audit,
    refusals,
    onRefused: bothAudits(audit, refusals?.audit),
    clock,
    logger,
    closing: new AbortController(),
    open: new OpenWork(clock),
  };
}

/** Combines two audits. */
function bothAudits(one: Audit | undefined, other: Audit | undefined): Audit | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (record) => {
    one(record);
    other(record);
  };
}

/** The codecs of the chosen versions, the preferred one first. */
function codecsOf<T extends Codec>(
  wires: Readonly<Record<string, T>>,
  versions: readonly string[] = Object.keys(wires),
): readonly [T, ...T[]] {
  const known = `This server supports ${Object.keys(wires).join(" and ")}`;
  const [first, ...others] = versions.map((version) => {
    const codec = Object.hasOwn(wires, version) ? wires[version] : undefined;
    if (codec !== undefined) return codec;
    throw cannotServe("versions", `has ${JSON.stringify(version)}, which is not supported. ${known}`);
  });
  if (first === undefined) throw cannotServe("versions", `must have at least one version. ${known}`);
  return [first, ...others];
}

/** The origins of pages that may call, for the check of hosts and origins. */
export function originsOf(cors: CorsOptions | boolean): "*" | readonly string[] {
  return typeof cors === "object" ? cors.origins : cors ? "*" : [];
}

function readPublicUrl(text: unknown): URL {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  const isBase = url !== undefined && /^https?:$/.test(url.protocol) && url.search + url.hash + url.username === "";
  if (url !== undefined && isBase) return url;
  // The value itself may contain a password, so the error does not show it.
  const problem = text === undefined ? "is required" : "is not valid";
  throw cannotServe(
    "publicUrl",
    `${problem}. Set it to the URL at which clients reach this server, such as "https://agents.example.com", without a query, ` +
      "a fragment or a user. Cards contain this URL, and the headers of a request are not a safe source of it",
  );
}
