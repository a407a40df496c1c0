import { describe, expect, test } from "vitest";
import {
  agentGateway,
  agpErrors,
  agpSchemas,
  type AgentGateway,
  type CapabilityAnnouncement,
  type IntentPayload,
  type RouteEntry,
} from "../../src/agp/index.ts";
import { satisfiesConstraints } from "../../src/agp/table.ts";
import type { JsonObject } from "@parley/a2a/internal/model/index";

/* The routes of the public sample (a2a-samples, extensions/agp, tests/test_agp.py and tests/simulation/enterprise). */

const legal = { path: "Squad_Legal/licensing_api", cost: 0.2, policy: { security_level: 3, geo: "US" } };
const finance = {
  path: "Squad_Finance/payroll_service",
  cost: 0.1,
  policy: { security_level: 5, requires_pii: true, geo: "US" },
};
const vendorEu = { path: "Vendor_EU/proxy_gateway", cost: 0.05, policy: { security_level: 1, geo: "EU" } };
const hardware = { path: "Squad_Engineering/hardware_tool", cost: 0.08, policy: { security_level: 3, geo: "US" } };
const contracts = { path: "Squad_Legal/contracts_tool", cost: 0.15, policy: { security_level: 3, geo: "US" } };
const vendorUs = { path: "Vendor_US/data_service", cost: 0.07, policy: { security_level: 2, geo: "US" } };
const cache = { path: "Internal/Free_Cache", cost: 0, policy: { security_level: 3, geo: "US" } };
const secureEu = { path: "Vendor_Secure_EU/proxy_gateway", cost: 0.3, policy: { security_level: 4, geo: "EU" } };

function withRoutes(routes: Readonly<Record<string, readonly RouteEntry[]>>): AgentGateway {
  const all = Object.entries(routes).flatMap(([capability, entries]) =>
    entries.map((entry) => ({ capability, version: "1.0", ...entry })),
  );
  return agentGateway({ name: "Test_Gateway", routes: all });
}

const sample = withRoutes({
  "procure:license": [legal, finance, vendorEu, vendorUs, cache, secureEu],
  "provision:hardware": [hardware],
  "provision:payroll": [finance],
  "contract:nda:generate": [contracts],
});

/** The path that an intent takes, or the reason of the error. */
async function pathOf(gateway: AgentGateway, target_capability: string, constraints?: JsonObject): Promise<string> {
  const intent: IntentPayload = {
    target_capability,
    payload: {},
    ...(constraints !== undefined && { policy_constraints: constraints }),
  };
  return gateway.route(intent).then(
    ({ path }) => path,
    (thrown: unknown) => Object.entries(agpErrors).find(([, error]) => error.is(thrown))?.[0] ?? String(thrown),
  );
}

describe("the routes of the public sample", () => {
  test.each<[number, string, JsonObject | undefined, string]>([
    [1, "procure:license", { security_level: 3, geo: "US" }, cache.path],
    [2, "procure:license", { requires_pii: true }, finance.path],
    [3, "unknown:capability", undefined, "routeNotFound"],
    [4, "procure:license", { security_level: 7 }, "policyViolation"],
    [6, "provision:hardware", { security_level: 3 }, hardware.path],
    [6, "provision:payroll", { requires_pii: true, security_level: 3 }, finance.path],
    [6, "contract:nda:generate", { security_level: 3 }, contracts.path],
    [7, "procure:license", { geo: "US" }, cache.path],
    [8, "procure:license", { security_level: 4 }, finance.path],
    [9, "procure:license", { security_level: 2, geo: "US" }, cache.path],
    [10, "procure:license", { security_level: 3, geo: "US" }, cache.path],
    [11, "procure:license", { security_level: 1 }, cache.path],
    [12, "procure:license", { geo: "NA" }, "policyViolation"],
    [13, "procure:license", { security_level: 5, geo: "US" }, finance.path],
    [14, "procure:license", {}, cache.path],
    [15, "procure:license", { geo: "EU", security_level: 5 }, "policyViolation"],
    [16, "provision:payroll", { requires_pii: true, security_level: 3 }, finance.path],
    [17, "procure:license", { security_level: 2 }, cache.path],
    [18, "procure:license", { security_level: 1 }, cache.path],
    [19, "procure:license", { geo: "US", security_level: 5 }, finance.path],
  ])("%i: %s with %j goes to %s (AGP §2, §3, §5)", async (_, capability, constraints, expected) => {
    expect(await pathOf(sample, capability, constraints)).toBe(expected);
  });

  test("5: an announcement adds a route (AGP §1)", async () => {
    const gateway = withRoutes({});
    const announcement = {
      capability: "test:add:new",
      version: "1.0",
      cost: 1,
      policy: { test: true, security_level: 1 },
    };
    expect((await gateway.routes("test:add:new")).routes).toEqual({});
    expect(await gateway.announce({ announcement, path: "TestSquad/target" })).toMatchObject({ accepted: true });
    expect((await gateway.routes()).routes).toEqual({
      "test:add:new": [{ path: "TestSquad/target", cost: 1, policy: announcement.policy }],
    });
  });
});

describe("the enterprise simulation", () => {
  const announced: readonly (CapabilityAnnouncement & { readonly path: string })[] = [
    {
      capability: "budget:authorize",
      version: "1.0",
      cost: 0.12,
      path: "Finance_ADK/budget_gateway",
      policy: { security_level: 5, requires_role: "finance_admin", geo: "US" },
    },
    {
      capability: "infra:provision",
      version: "1.5",
      cost: 0.04,
      path: "Engineering_LC/provisioner_tool",
      policy: { security_level: 3, geo: "US" },
    },
    {
      capability: "onboarding:initiate",
      version: "1.0",
      cost: 0.15,
      path: "HR_LC/onboarding_service",
      policy: { security_level: 4, requires_pii: true, geo: "US" },
    },
    {
      capability: "content:draft",
      version: "2.0",
      cost: 0.08,
      path: "Marketing_LG/content_tool",
      policy: { security_level: 2, geo: "US" },
    },
    {
      capability: "policy:audit",
      version: "1.0",
      cost: 0.2,
      path: "Compliance_ADK/audit_service",
      policy: { security_level: 5, requires_role: "exec", geo: "US" },
    },
    {
      capability: "infra:provision",
      version: "1.0",
      cost: 0.03,
      path: "External_Vendor/vm_tool",
      policy: { security_level: 1, geo: "US" },
    },
  ];
  const gateway = agentGateway({ name: "Central_AGP_Router", routes: announced });

  test.each<[string, JsonObject, string]>([
    ["budget:authorize", { security_level: 5 }, "Finance_ADK/budget_gateway"],
    ["budget:authorize", { security_level: 5, requires_role: "finance_admin" }, "Finance_ADK/budget_gateway"],
    ["policy:audit", { requires_role: "exec" }, "Compliance_ADK/audit_service"],
    ["infra:provision", { security_level: 3 }, "Engineering_LC/provisioner_tool"],
    // Its specification has this bound, and its code knows none: there no route has such a policy.
    ["infra:provision", { security_level: 3, cost_max: 0.05 }, "Engineering_LC/provisioner_tool"],
    ["infra:provision", { cost_max: 0.03 }, "External_Vendor/vm_tool"],
    ["infra:provision", { cost_max: 0.02 }, "policyViolation"],
    ["onboarding:initiate", { requires_pii: true }, "HR_LC/onboarding_service"],
    ["content:draft", { security_level: 2 }, "Marketing_LG/content_tool"],
  ])("%s with %j goes to %s", async (capability, constraints, path) => {
    expect(await pathOf(gateway, capability, constraints)).toBe(path);
  });

  test("reports which parts of a delegation have a route", async () => {
    const part = (target_capability: string, policy_constraints: JsonObject): IntentPayload => ({
      target_capability,
      payload: { project: "Audit" },
      policy_constraints,
    });
    const delegation = {
      meta_task: "A project without access",
      origin_squad: "Marketing",
      sub_intents: [
        part("budget:authorize", { security_level: 5, requires_role: "finance_admin" }),
        part("unknown:capability", {}),
      ],
    };
    expect(await gateway.routeAll(delegation)).toEqual({
      "budget:authorize": "SUCCESS",
      "unknown:capability": "FAILED",
    });
  });
});

describe("of several routes", () => {
  const route = (path: string, cost?: number, policy: JsonObject = {}) => ({
    capability: "a",
    version: "1",
    path,
    policy,
    ...(cost !== undefined && { cost }),
  });

  test("with the same cost the first announced wins, even after renewal", async () => {
    const gateway = agentGateway({ name: "G" });
    const announce = ({ path, ...announcement }: ReturnType<typeof route>) => gateway.announce({ announcement, path });
    await announce(route("first", 1));
    await announce(route("second", 1));
    await announce(route("first", 1));
    expect(await pathOf(gateway, "a")).toBe("first");
    expect((await gateway.routes()).routes["a"]).toHaveLength(2);
    await announce(route("first", 2));
    expect(await pathOf(gateway, "a")).toBe("second");
  });

  test("one without a cost costs nothing", async () => {
    expect(await pathOf(agentGateway({ name: "G", routes: [route("dear", 0.01), route("free")] }), "a")).toBe("free");
  });
});

describe("a constraint", () => {
  test.each<[JsonObject, JsonObject, boolean]>([
    [{ security_level: 5 }, { security_level: 3 }, true],
    [{ security_level: 3 }, { security_level: 3 }, true],
    [{ security_level: 2 }, { security_level: 3 }, false],
    [{ security_level: "5" }, { security_level: 3 }, false],
    [{ security_level: "high" }, { security_level: "high" }, true],
    [{}, { security_level: 0 }, false],
    [{ level: 5 }, { level: 3 }, false],
    [{ requires_pii: true }, { requires_pii: 1 }, false],
    [{ requires_pii: true }, { requires_PII: true }, false],
    [{ none: null }, { none: null }, true],
    [{}, { none: null }, false],
    [{ zones: ["a", { b: 1, c: 2 }] }, { zones: ["a", { c: 2, b: 1 }] }, true],
    [{ zones: ["a", "b"] }, { zones: ["b", "a"] }, false],
    [{ zone: { a: 1 } }, { zone: { a: 1, b: 2 } }, false],
    [{}, { cost_max: 0.5 }, true],
    [{}, { cost_max: 0.4 }, false],
    [{}, { cost_max: "0.9" }, false],
    [{ cost_max: "0.9" }, { cost_max: "0.9" }, true],
    [{}, { toString: "x" }, false],
    [{}, {}, true],
  ])("%j, asked for %j: %s", (policy, constraints, expected) => {
    expect(satisfiesConstraints({ policy, cost: 0.5 }, constraints)).toBe(expected);
  });
});

describe("the shapes (AGP §1, §2)", () => {
  const valid = (schema: keyof typeof agpSchemas, value: unknown): boolean => {
    const result = agpSchemas[schema]["~standard"].validate(value);
    return !(result instanceof Promise) && result.issues === undefined;
  };
  const announcement = {
    capability: "financial_analysis:quarterly",
    version: "1.5",
    cost: 0.05,
    policy: { requires_auth: "level_3" },
  };
  const intent = { target_capability: "billing:invoice:generate", payload: { customer_id: 123, amount: 99.99 } };

  test.each<[keyof typeof agpSchemas, unknown, boolean]>([
    ["announcement", announcement, true],
    ["announcement", { ...announcement, cost: undefined }, true],
    ["announcement", { ...announcement, cost: null }, true],
    ["announcement", { ...announcement, version: undefined }, false],
    ["announcement", { ...announcement, policy: undefined }, false],
    ["announcement", { ...announcement, cost: "cheap" }, false],
    ["announcement", { ...announcement, cost: -1 }, false],
    ["announcement", { ...announcement, extra: 1 }, false],
    ["announcement", { ...announcement, capability: "a".repeat(257) }, false],
    ["announcement", { ...announcement, policy: { a: "x".repeat(4096) } }, false],
    ["intent", { ...intent, policy_constraints: { requires_pii: true } }, true],
    ["intent", intent, true],
    ["intent", { ...intent, policy_constraints: { a: "x".repeat(8192) } }, false],
    ["intent", { ...intent, payload: "text" }, false],
    ["intent", { ...intent, extra: 1 }, false],
    ["delegation", { meta_task: "m", sub_intents: [intent], origin_squad: "HR" }, true],
    ["delegation", { meta_task: "m", sub_intents: [], origin_squad: "HR" }, false],
    [
      "delegation",
      { meta_task: "m", sub_intents: Array.from({ length: 33 }, () => intent), origin_squad: "HR" },
      false,
    ],
    ["delegation", { meta_task: "m", sub_intents: [{ ...intent, extra: 1 }], origin_squad: "HR" }, false],
    ["table", { routes: { a: [{ path: "p", cost: 1, policy: {} }] } }, true],
    ["table", { routes: { a: [{ path: "p", policy: {} }] } }, false],
    ["params", { agent_role: "gateway", supported_agp_versions: ["1.0"] }, true],
  ])("%s %j: %s", (schema, value, expected) => {
    expect(valid(schema, value)).toBe(expected);
  });
});
