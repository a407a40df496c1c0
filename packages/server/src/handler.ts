import { auditedAuthentication, auditedService, refusedCall } from "@parley/a2a/internal/auth/audited";
import { authorized, skillInMetadata, type Authorization } from "@parley/a2a/internal/auth/authorized";
import {
  silentLogger,
  systemClock,
  withoutQuery,
  withoutSlashes,
  type Clock,
  type Logger,
} from "@parley/a2a/internal/base/index";
import { createEngine } from "./engine/index.ts";
import { A2AError } from "@parley/a2a/internal/model/index";
import {
  ByteBudget,
  intercept,
  observeCalls,
  safeAudit,
  safeObserver,
  type Agent,
  type AgentService,
  type Audit,
  type Interceptor,
  type UniversalRequest,
} from "@parley/a2a/internal/protocol/index";
import { authenticationOf, checkCallers, type Authentication } from "./server/authentication.ts";
import { cardGates } from "./server/card-readers.ts";
import { cardSignerOf } from "./server/cards.ts";
import { blobsOf, fileEndpoint, fileReceiver, roomFor } from "./server/blobs.ts";
import { toFetch } from "@parley/a2a/internal/transport/server/fetch";
import { attendant, startedBy, wakeEngine } from "./server/on-demand.ts";
import type { AgentMount, Handler, HandlerLimits, HandlerOptions as Options, ServedAgent } from "./server/options.ts";
import { checkIds, checkStore, codecsOf, mountsOf, originsOf, readPublicUrl } from "./server/settings.ts";
import { probesOf, ReadinessCheck } from "./server/health.ts";
import { callbackEndpoint, inTaskSettingsOf } from "./server/intask.ts";
import { methodRoutes, operationsWith } from "./server/methods.ts";
import { keySetDocument, pushOutbox, pushSettingsOf, webhooksParams } from "./server/push.ts";
import type { Authenticate } from "./limits/index.ts";
import { checkLimits, withinRates, withinStreams } from "./server/limits.ts";
import { refusalLog, type RefusalLog } from "./server/refusals.ts";
import { engineAgent, serveAgent, serviceMount, type MountedAgent } from "./server/serve-agent.ts";
import type { CardGate } from "@parley/a2a/internal/transport/discovery/handler";
import { jsonRpcBinding } from "@parley/a2a/internal/transport/jsonrpc/handler";
import { restBinding } from "@parley/a2a/internal/transport/rest/handler";
import { admission, hostsOf, type Admission, type CorsOptions } from "@parley/a2a/internal/transport/server/origins";
import type { InterfacePaths, ServiceMount } from "@parley/a2a/internal/transport/router/claims";
import { type Pages, beforeRouter, checkBindings, createRouter } from "@parley/a2a/internal/transport/router/router";
import {
  isAnyPath,
  openAnyPath,
  type ServerBinding,
  type ServerHost,
} from "@parley/a2a/internal/transport/server/binding";
import {
  answerWith,
  tagged,
  type Document,
  errorResponse,
  failureOf,
} from "@parley/a2a/internal/transport/server/response";
import { KeepAlive } from "@parley/a2a/internal/transport/server/event-stream";
import { unfinishedBodies } from "@parley/a2a/internal/transport/server/unfinished";
import { checkHandlerOptions } from "./server/option-names.ts";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import { codecV03, codecV1, draftsOf, wires, type ProtocolVersion } from "@parley/a2a/internal/wires";

export { checkHandlerOptions, jsonRpcBinding, restBinding };
export type {
  AgentMount,
  CorsOptions,
  Handler,
  HandlerLimits,
  InterfacePaths,
  ProtocolVersion,
  ServedAgent,
  ServerBinding,
};

/** Options of `createHandler`. */
export type HandlerOptions = Options<ProtocolVersion>;

/**
 * Serves agents over all bindings.
 *
 * @throws A2AError `InvalidParams` where an option is missing or wrong, or where two agents or two bindings have one address or one
 * name.
 */
export function createHandler(agents: Agent | AgentMount | readonly AgentMount[], options: HandlerOptions): Handler {
  const { authenticator, logger = silentLogger, clock = systemClock } = options;
  const { bindings = [jsonRpcBinding(), restBinding()] } = options;
  checkHandlerOptions("createHandler()", options);
  checkLimits(options.limits);
  checkCallers(options);
  checkBindings(bindings);
  checkStore(options.store);
  const {
    bodyBytes: maxBytes = 10 << 20,
    depth = 64,
    unfinishedBytes,
    answerBytes = 128 << 20,
    streamsPerCaller,
    rate,
    ...engineLimits
  } = options.limits ?? {};
  const bodyBytes = Math.min(maxBytes, options.store.recordBytes ?? Infinity);
  const codecs = codecsOf(wires, options.versions);
  const publicUrl = readPublicUrl(options.publicUrl);
  const push = pushSettingsOf(options.push, publicUrl, logger);
  const by = {
    publicUrl: withoutSlashes(publicUrl.href),
    bindings,
    codecs,
    ...(authenticator !== undefined && { authenticator }),
    extensions: options.extensions ?? [],
    dedupes: options.dedupe !== false,
    blobs: options.blobs !== undefined,
    ...(push !== undefined && { push: webhooksParams(push) }),
  };
  const served = mountsOf(agents).map((mount) => serveAgent(mount, by));
  const extensionsOf = ({ mount }: MountedAgent) => [...(mount.agent.extensions ?? []), ...by.extensions];
  const methods = methodRoutes(served.map(extensionsOf), Object.values(wires));
  /** The services of agents for methods of extensions: without interceptors. */
  const guarded = new Map<string, AgentService>();
  checkIds(served.map(({ id }) => id));
  const basePath = withoutSlashes(options.basePath ?? publicUrl.pathname);
  const signer = cardSignerOf(options.signCards, { publicUrl: by.publicUrl, basePath, codecs });
  const audit = options.audit && safeAudit(options.audit, logger);
  const refusals = refusalLog(logger, clock, publicUrl.href);
  /** Is told of refused callers. */
  const watch = bothAudits(audit, refusals?.audit);
  const { push: _, audit: _audit, authorization: _authorization, blobs: _blobs, ...engineOptions } = options;
  const files = blobsOf(options.blobs, { publicUrl: by.publicUrl, pushKeys: push?.keys });
  const where = { publicUrl: by.publicUrl, basePath, agents: served };
  const authentication = authenticationOf(authenticator, where, options.skillOf, options.cardReaders);
  const engine = createEngine({
    ...engineOptions,
    ...(audit !== undefined && { audit }),
    inTask: inTaskSettingsOf(options.authorization, {
      publicUrl: by.publicUrl,
      logger,
      pushKeys: push?.keys,
      authenticator,
      authenticate: (request) => host.authenticate(request),
    }),
    limits: engineLimits,
    ...(files !== undefined && { files }),
    agents: served.map((each) => ({
      ...engineAgent(each, signer),
      guarded: () => guarded.get(each.id) as AgentService,
    })),
    ...(push !== undefined && { push, outbox: pushOutbox(push, [codecV1, codecV03, ...draftsOf([codecV1])]) }),
  });
  const observer = options.observer && safeObserver(options.observer, logger);
  const within = withinStreams(streamsPerCaller);
  const services = served.map((each) => {
    const wrapping = { ...options, clock, audit: watch, within };
    const service = wrapped(engine.service(each.id), each, authentication, wrapping);
    const bare = { ...wrapping, interceptors: [] };
    if (methods.length > 0) guarded.set(each.id, wrapped(engine.service(each.id), each, authentication, bare));
    return observer?.call === undefined ? service : observeCalls(observer, each.id)(service);
  });

  const answers = new ByteBudget(answerBytes, clock, "The server is busy with other large answers");
  const hostNames = [publicUrl.host, ...served.flatMap(({ card }) => hostsOf(card))];
  const authenticate: Authenticate = (request) => authentication.authenticate(request);
  const limiting = { clock, logger, rates: options.store.rates, isClosed: () => engine.isClosed() };
  const limited = (inner: Authenticate): Authenticate => withinRates(inner, rate, limiting);
  const readiness = new ReadinessCheck(options.store, clock, logger);
  const probes = probesOf(options.health, readiness);
  const host = serverHost(
    options,
    hostNames,
    {
      readiness: () => readiness.check(),
      authenticate:
        watch === undefined ? limited(authenticate) : auditedAuthentication(authenticate, limited, watch, clock),
      codecs: [...codecs, ...draftsOf(codecs)],
      services: new Map(served.map(({ label }, at) => [label, services[at] as AgentService])),
      limits: {
        bodyBytes,
        depth,
        unfinished: unfinishedBodies(bodyBytes, unfinishedBytes ?? roomFor(options.blobs, bodyBytes), clock),
        answers,
      },
      ...(methods.length > 0 && { methods }),
      ...(options.blobs !== undefined && {
        receiver: fileReceiver(options.blobs, (sender) => {
          const ids = served.filter((_, at) => [...sender.services.values()].includes(services[at] as AgentService));
          return engine.receive(
            ids.map(({ id }) => id),
            sender,
          );
        }),
      }),
      clock,
      logger,
    },
    refusals,
  );
  const gateOf = cardGates(options, authentication, host.authenticate, { audit: watch, clock });
  const router = createRouter(
    served.map((each, at) => serviceMount(basePath, each, services[at] as AgentService, signer, gateOf?.(each))),
    {
      ...host,
      bindings,
      maxAge: options.cardMaxAge ?? 300,
      ...(options.page !== false && { pages: pagesOf(basePath, by.publicUrl, served, codecs[0], logger) }),
      documents: [
        ...authentication.documents,
        ...(push === undefined ? [] : [keySetDocument(basePath, push)]),
        ...(signer === undefined ? [] : [signer.document]),
      ],
      endpoints: [
        callbackEndpoint(basePath, host.limits.unfinished, () => engine.authorizations),
        ...(files === undefined ? [] : [fileEndpoint(basePath, (request) => engine.file(request, answers))]),
        ...probes,
      ],
    },
  );
  const anyPath = bindings.filter(isAnyPath).map((binding) => openAnyPath(binding, host));
  const { waitUntil } = options;
  const onDemand = waitUntil && attendant({ engine, clock, waitUntil });
  const handle = startedBy(onDemand, engine, beforeRouter(anyPath, router.handle));
  // Last: where an option is wrong, nothing goes on after the error.
  if (onDemand === undefined) engine.start();
  return {
    handle,
    fetch: toFetch(handle, options.facts, host.logger, onDemand),
    find: router.find,
    answers: router.answers,
    claims: (request) => anyPath.some((endpoint) => endpoint.claims(request)),
    isProbe: (url) => probes.some(({ path }) => path === withoutQuery(url)),
    host: onDemand === undefined ? host : { ...host, attend: onDemand },
    agents: served,
    signal: (...event) => engine.signal(...event),
    deleteOwner: (...of) => engine.deleteOwner(...of),
    exportOwner: (of) => engine.exportOwner(of),
    wake: (waking) => wakeEngine(engine, clock, waking, waitUntil === undefined),
    drain: () => readiness.close(),
    close(closing) {
      readiness.close();
      for (const endpoint of anyPath) endpoint.close?.();
      answers.close(new A2AError("Unavailable", "The server is stopping", { retryAfter: 1 }));
      refusals?.close();
      return engine.close(closing);
    },
  };
}

/** The pages for browsers. They are loaded when a browser comes, and written once, except for those that few may read. */
function pagesOf(
  root: string,
  publicUrl: string,
  served: readonly MountedAgent[],
  codec: Codec,
  logger: Logger,
): Pages {
  const written = new Map<readonly ServiceMount[], Promise<Document>>();
  const write = async (mounts: readonly ServiceMount[], gate: CardGate | undefined): Promise<Document> => {
    const { agentPage, listPage, pageHeaders } = await import("./page/index.ts");
    const agents = served.filter(({ card }) => mounts.some((mount) => mount.card === card));
    const [only, ...others] = agents;
    const text = only !== undefined && others.length === 0 ? agentPage(only) : listPage(agents, publicUrl);
    const headers = await pageHeaders();
    if (gate === undefined) return tagged(text, headers);
    const vary = [headers["vary"], ...gate.vary].join(", ");
    return tagged(text, { ...headers, "cache-control": "private, no-cache", vary });
  };
  return {
    root,
    async answer(request, mounts) {
      const gate = mounts.find((mount) => mount.gate !== undefined)?.gate;
      if (gate !== undefined) {
        try {
          return answerWith(await write(await readable(request, mounts), gate), request);
        } catch (thrown) {
          const fields = { url: withoutQuery(request.url) };
          return errorResponse(
            codec,
            failureOf(thrown, logger, fields, () => false),
          );
        }
      }
      const page = written.get(mounts) ?? write(mounts, gate);
      written.set(mounts, page);
      return answerWith(await page, request);
    },
  };
}

/**
 * The agents whose cards the sender of a request may read.
 *
 * @throws A2AError the refusal of the first one, where it may read none.
 */
async function readable(request: UniversalRequest, mounts: readonly ServiceMount[]): Promise<readonly ServiceMount[]> {
  const found: ServiceMount[] = [];
  let refusal: unknown;
  for (const mount of mounts) {
    try {
      await mount.gate?.check(request, mounts.length > 1);
      found.push(mount);
    } catch (thrown) {
      refusal ??= thrown;
    }
  }
  if (found.length === 0) throw refusal;
  return found;
}

/** The service of one agent: the engine's, in the interceptors, in the authorizer, in the checks of its card, in the audit. */
function wrapped(
  service: AgentService,
  agent: MountedAgent,
  authentication: Authentication,
  { authorizer, interceptors = [], skillOf = skillInMetadata, clock, audit, within }: Wrapping,
): AgentService {
  const { id, card } = agent;
  const intercepted = intercept(service, interceptors);
  const onHidden: Authorization["onHidden"] = (...call) =>
    audit?.({ event: "authorization", ...refusedCall(id, ...call, clock) });
  const allowed =
    authorizer === undefined
      ? intercepted
      : authorized(intercepted, { authorizer, agent: id, skills: card.skills, skillOf, onHidden });
  const checked = within(authentication.guard(allowed, agent));
  return audit === undefined ? checked : auditedService(checked, id, audit, clock);
}

/** What the service of an agent is wrapped in. */
interface Wrapping extends Pick<HandlerOptions, "authorizer" | "interceptors" | "skillOf"> {
  readonly clock: Clock;
  readonly audit: Audit | undefined;
  /** The limit of open streams. */
  readonly within: Interceptor;
}

/** Tells both, where there are two. */
function bothAudits(one: Audit | undefined, other: Audit | undefined): Audit | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (record) => {
    one(record);
    other(record);
  };
}

/** What the bindings get. `hostNames`: the hosts in the addresses of this server. */
function serverHost(
  { cors = false, allowedHosts, strictVersion = false, keepAlive = 15_000 }: HandlerOptions,
  hostNames: readonly string[],
  given: Pick<
    ServerHost,
    "methods" | "receiver" | "authenticate" | "codecs" | "readiness" | "services" | "limits" | "clock" | "logger"
  >,
  refusals: RefusalLog | undefined,
): ServerHost {
  const admits = allowedHosts && admission([...hostNames, ...allowedHosts], originsOf(cors));
  const admit = admits && loggedAdmission(admits, refusals);
  return {
    ...given,
    ...(refusals !== undefined && { refusedOrigin: (request) => refusals.origin(request) }),
    operations: operationsWith(given.methods),
    ...(admit !== undefined && { admit }),
    strictVersion,
    keepAlive: new KeepAlive(given.clock, keepAlive),
    ...(cors !== false && { cors }),
  };
}

/** The same admission. What it refuses is logged. */
function loggedAdmission(admit: Admission, refusals: RefusalLog | undefined): Admission {
  if (refusals === undefined) return admit;
  return (request) => {
    try {
      admit(request);
    } catch (thrown) {
      refusals.host(request);
      throw thrown;
    }
  };
}
