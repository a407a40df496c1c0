import type { SecurityRequirement, SecurityScheme } from "@parley/a2a/internal/model/index";
import { mapValues } from "@parley/a2a/internal/base/index";
import { operatorRoutes, refusalOf, schemaOf, type OperatorRoute } from "./routes.ts";
import { ref, schemas, type JsonSchema } from "./schemas.ts";

/* The OpenAPI 3.1 document of the operators' API, generated from the table of its routes. */

const json = (schema: JsonSchema): JsonSchema => ({ "application/json": { schema } });

const failures: Readonly<Record<string, string>> = {
  400: "An input is wrong",
  401: "The caller is not known",
  403: "The caller is not an operator, or may not do this",
  405: "The path has no such method",
  413: "The body is too large",
  500: "The server failed; its log has the cause",
  503: "The store cannot work now",
};

/** The credentials that callers need. Absent: only callers on this machine are allowed, without credentials. */
interface Security {
  readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  readonly securityRequirements: readonly SecurityRequirement[];
}

/**
 * The document.
 *
 * @param url - URL of the API, below which its paths are.
 */
export function openApi(url: string, own?: Security): JsonSchema {
  const { securitySchemes = {}, securityRequirements = [] } = own ?? {};
  const paths: Record<string, JsonSchema> = {};
  for (const route of operatorRoutes) paths[route.path] = { [route.method.toLowerCase()]: operationOf(route) };
  return {
    openapi: "3.1.0",
    info: {
      title: "Parley operators",
      version: "1",
      description: "Reads and acts of operators on the tasks of all owners. Each act is stored in an audit.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url }],
    security: securityRequirements.map(requirementOf),
    paths,
    components: { schemas, securitySchemes: mapValues(securitySchemes, schemeOf) },
  };
}

/** Converts a security scheme of a card to OpenAPI. */
function schemeOf(scheme: SecurityScheme): JsonSchema {
  const { httpAuthSecurityScheme: http, apiKeySecurityScheme: key, openIdConnectSecurityScheme: oidc } = scheme;
  if (http !== undefined) return { type: "http", scheme: http.scheme.toLowerCase() };
  if (key !== undefined) return { type: "apiKey", in: key.location, name: key.name };
  if (oidc !== undefined) return { type: "openIdConnect", openIdConnectUrl: oidc.openIdConnectUrl };
  if (scheme.mtlsSecurityScheme !== undefined) return { type: "mutualTLS" };
  return { type: "http", scheme: "bearer" };
}

function requirementOf({ schemes = {} }: SecurityRequirement): JsonSchema {
  return mapValues(schemes, ({ list = [] }) => list);
}

function operationOf(route: OperatorRoute): JsonSchema {
  const { id, summary, method, inputs, answer } = route;
  const { conflict = "The task has changed, or does not allow this" } = route;
  const refusal = refusalOf(route);
  const responses: Record<string, JsonSchema> = {
    200: { description: "Done", content: json(ref(answer)) },
    ...Object.fromEntries(
      Object.entries(failures).map(([status, description]) => [status, { description, content: json(ref("Error")) }]),
    ),
  };
  if (inputs["taskId"] !== undefined) {
    responses["404"] = { description: "There is no such task", content: json(refusal ?? ref("Error")) };
  }
  if (refusal !== undefined) responses["409"] = { description: `Refused: ${conflict}`, content: json(refusal) };
  const members = Object.entries(inputs);
  const described = members.map(
    ([name, input]) => [name, { ...schemaOf(input), description: input.description }] as const,
  );
  if (method === "GET") {
    const parameters = members.map(([name, input]) => ({
      name,
      in: "query",
      description: input.description,
      required: input.required === true,
      schema: schemaOf(input),
      ...(input.type === "states" && { style: "form", explode: false }),
    }));
    return { operationId: id, summary, parameters, responses };
  }
  const body: JsonSchema = {
    type: "object",
    properties: Object.fromEntries(described),
    required: members.filter(([, input]) => input.required === true).map(([name]) => name),
    additionalProperties: false,
  };
  return { operationId: id, summary, requestBody: { required: true, content: json(body) }, responses };
}
