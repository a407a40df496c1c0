import { isLoopback } from "@parley/a2a/internal/base/http";
import { withoutQuery } from "@parley/a2a/internal/base/index";
import { A2AError, invalidParams } from "@parley/a2a/internal/model/index";
import {
  anonymous,
  auditedSubject,
  isOfOtherPage,
  type Principal,
  type UniversalRequest,
  type UniversalResponse,
} from "@parley/a2a/internal/protocol/index";
import type { PublicEndpoint } from "@parley/a2a/internal/transport/router/router";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import { errorResponse, failureOf } from "@parley/a2a/internal/transport/server/response";
import type { Operator } from "../operate/port.ts";
import { operatorRoutes, readInputs, requestOf, type OperatorRequest, type OperatorRoute } from "../operate/routes.ts";
import { operatorsOf } from "../operate/operator.ts";
import type { HandlerOptions, OperatorOptions } from "./options.ts";
import type { HostSettings } from "./settings.ts";

/* The option `operators` of a handler: a REST API for operators. */

/** Largest body, in bytes. */
const maxBodyBytes = 64 << 10;

interface OperatorsInit {
  readonly settings: HostSettings;
  readonly options: Pick<HandlerOptions, "operators" | "store">;
  /** Makes the operators' service. Called with the first request. */
  readonly operator: () => Promise<Operator>;
}

/**
 * The endpoints of the API. Empty if the option is off.
 *
 * @throws A2AError `InvalidParams` if the option is wrong, or if anyone could reach the API.
 */
export function operatorEndpoints(init: OperatorsInit): readonly PublicEndpoint[] {
  const { settings, options } = init;
  const { operators } = options;
  if (operators === undefined || operators === false) return [];
  const own = operators === true ? {} : operators;
  const { path = "/ops" } = own;
  checkOperators(own, path, init);
  const api = new OperatorApi(own, init);
  const at = (below: string): string => settings.basePath + path + below;
  return [
    ...operatorRoutes.reduce((byPath, route) => {
      byPath.set(route.path, [...(byPath.get(route.path) ?? []), route]);
      return byPath;
    }, new Map<string, OperatorRoute[]>()),
  ]
    .map(([below, routes]): PublicEndpoint => ({
      path: at(below),
      name: "The API of operators",
      answer: (request) => api.answer(request, routes),
    }))
    .concat(
      ["", "/openapi.json"].map((below) => ({
        path: at(below),
        name: "The document of the API of operators",
        answer: (request) => api.document(request, settings.publicUrl + path, below),
      })),
    );
}

function checkOperators(
  { authenticator, authorize }: OperatorOptions,
  path: string,
  { settings, options }: OperatorsInit,
): void {
  if (typeof path !== "string" || !/^(?:\/(?!\.{1,2}(?:\/|$))[\w\-.~]+)+$/.test(path)) {
    throw cannotServe("operators.path", `is ${JSON.stringify(path)}. It must be a path such as "/ops"`);
  }
  operatorsOf(options.store);
  if (authenticator === undefined && !isLoopback(new URL(settings.publicUrl).hostname)) {
    throw cannotServe(
      "operators.authenticator",
      "is required where publicUrl is not a loopback address: an operator sees and changes the tasks of all owners",
    );
  }
  if (authenticator !== undefined && typeof authorize !== "function") {
    throw cannotServe("operators.authorize", "is required with operators.authenticator: it decides who is an operator");
  }
}

class OperatorApi {
  readonly #options: OperatorOptions;
  readonly #init: OperatorsInit;
  #operator: Promise<Operator> | undefined;

  constructor(options: OperatorOptions, init: OperatorsInit) {
    this.#options = options;
    this.#init = init;
  }

  answer(request: UniversalRequest, routes: readonly OperatorRoute[]): Promise<UniversalResponse> {
    return this.#guarded(request, async () => {
      const principal = await this.#operatorOf(request);
      const route = routes.find(({ method }) => method === request.method);
      if (route === undefined) return notAllowed(routes.map(({ method }) => method));
      const given = readInputs(route, await valuesOf(request));
      await this.#authorize(requestOf(route, given, principal), request);
      const context = {
        ...(principal !== anonymous && { principal }),
        ...(typeof given["reason"] === "string" && { reason: given["reason"] }),
      };
      const answer = await route.run(await this.#own(), given, context);
      return answer === undefined ? answerOf(404, noTask) : answerOf(statusOf(answer), answer);
    });
  }

  /** The document, or at the root of the API a link to it (RFC 8631). */
  document(request: UniversalRequest, url: string, below: string): Promise<UniversalResponse> {
    return this.#guarded(request, async () => {
      await this.#authorize({ principal: await this.#operatorOf(request), act: "read" }, request);
      if (request.method !== "GET") return notAllowed(["GET"]);
      if (below === "") {
        const document = `${url}/openapi.json`;
        const link = `<${document}>; rel="service-desc"; type="application/json"`;
        return { ...answerOf(200, { document }), headers: { ...jsonHeaders, link } };
      }
      const { openApi } = await import("../operate/openapi.ts");
      return answerOf(200, openApi(url, this.#options.authenticator));
    });
  }

  async #guarded(request: UniversalRequest, work: () => Promise<UniversalResponse>): Promise<UniversalResponse> {
    const { codecs, logger, open } = this.#init.settings;
    open.begin();
    try {
      return await work();
    } catch (thrown) {
      const fields = { url: withoutQuery(request.url) };
      return errorResponse(
        codecs[0],
        failureOf(thrown, logger, fields, () => request.signal.aborted),
      );
    } finally {
      open.end();
    }
  }

  /** @throws A2AError for unauthenticated callers, and for pages of other origins. */
  async #operatorOf(request: UniversalRequest): Promise<Principal> {
    const { publicUrl } = this.#init.settings;
    const { authenticator } = this.#options;
    if (isOfOtherPage(request, publicUrl)) {
      throw new A2AError("PermissionDenied", "Pages of other origins may not call the API of operators");
    }
    if (authenticator !== undefined) {
      const url = new URL(publicUrl).origin + withoutQuery(request.url);
      return authenticator.authenticate(request, { resources: [publicUrl], url });
    }
    const { remoteAddress } = request.facts ?? {};
    const isProxied = proxyHeaders.some((name) => request.header(name) !== undefined);
    if (remoteAddress === undefined || !isLoopback(remoteAddress) || isProxied) {
      this.#refused(anonymous, request);
      throw new A2AError("PermissionDenied", "Only direct connections from this machine may operate this server");
    }
    return anonymous;
  }

  async #authorize(wanted: OperatorRequest, request: UniversalRequest): Promise<void> {
    const { authorize } = this.#options;
    if (authorize === undefined || (await authorize(wanted)) === true) return;
    this.#refused(wanted.principal, request);
    throw new A2AError("PermissionDenied", "The caller may not do this as an operator");
  }

  #refused(principal: Principal, request: UniversalRequest): void {
    const { onRefused, clock } = this.#init.settings;
    const known = principal === anonymous ? undefined : principal;
    const subject = auditedSubject({ principal: known, address: request.facts?.remoteAddress });
    onRefused?.({ event: "authorization", outcome: "refused", time: clock.now(), action: "ops", ...subject });
  }

  #own(): Promise<Operator> {
    return (this.#operator ??= this.#init.operator());
  }
}

/** Headers of proxies, which show that a request may come from another machine. */
const proxyHeaders = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

const noTask = { error: { code: 404, status: "NOT_FOUND", message: "There is no such task" } };

/** The inputs of a query, or the members of a body. */
async function valuesOf(request: UniversalRequest): Promise<ReadonlyMap<string, unknown>> {
  if (request.method === "GET") {
    const at = request.url.indexOf("?");
    const query = new URLSearchParams(at < 0 ? "" : request.url.slice(at + 1));
    const twice = [...query.keys()].find((name) => query.getAll(name).length > 1);
    if (twice !== undefined) throw invalidParams([{ field: twice, description: "must not be repeated" }]);
    return new Map(query);
  }
  if (!/^application\/json\b/i.test(request.header("content-type") ?? "")) {
    throw new A2AError("InvalidParams", "The body must be of type application/json");
  }
  const body: unknown = parsed(await request.text(maxBodyBytes));
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new A2AError("InvalidParams", "The body must be a JSON object");
  }
  return new Map(Object.entries(body));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new A2AError("ParseError", undefined, { cause });
  }
}

function statusOf(answer: object): number {
  if (!("ok" in answer) || answer.ok === true) return 200;
  return "reason" in answer && answer.reason === "notFound" ? 404 : 409;
}

const jsonHeaders = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
};

function answerOf(status: number, answer: object): UniversalResponse {
  return { status, headers: jsonHeaders, body: JSON.stringify(answer) };
}

function notAllowed(methods: readonly string[]): UniversalResponse {
  const error = { error: { code: 405, status: "UNIMPLEMENTED", message: "This method is not allowed here" } };
  return { ...answerOf(405, error), headers: { ...jsonHeaders, allow: methods.join(", ") } };
}
