import { describe, expect, test } from "vitest";
import {
  checkCapabilities,
  checkDataModel,
  checkParams,
  negotiate,
  readCapabilities,
  readDataModel,
  writeCapabilities,
  type A2uiParams,
} from "../../src/a2ui/capabilities.ts";
import { a2ui, type A2uiVersion } from "../../src/a2ui/index.ts";

/* A2UI 0.8 §2.1 "Catalog Negotiation"; specification/VERSION/json/client_capabilities.json and client_data_model.json. */

const basic = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json";
const own = "https://example.com/catalogs/forms/v1";
const inline = { catalogId: "https://example.com/catalogs/inline", components: { Pad: { type: "object" } } };

describe("the card lists the agent's catalogs", () => {
  test.each<[A2uiVersion, string, string]>([
    ["0.8", "v0.8", "https://a2ui.org/specification/v0_8/standard_catalog_definition.json"],
    ["0.9", "v0.9", basic],
    ["0.9.1", "v0.9.1", basic],
    ["0.10", "v0.10", "https://a2ui.org/specification/v0_10/catalogs/basic/catalog.json"],
  ])("%s, with the catalog of the version if no other is named", (version, name, catalog) => {
    expect(a2ui({ version })).toMatchObject({
      uri: `https://a2ui.org/a2a-extension/a2ui/${name}`,
      params: { supportedCatalogIds: expect.arrayContaining([catalog]) },
    });
  });

  test("and acceptsInlineCatalogs only if true", () => {
    expect(a2ui({ version: "0.9", catalogs: [own], acceptsInlineCatalogs: true }).params).toEqual({
      supportedCatalogIds: [own],
      acceptsInlineCatalogs: true,
    });
    expect(a2ui({ version: "0.9", acceptsInlineCatalogs: false }).params).not.toHaveProperty("acceptsInlineCatalogs");
  });

  test("params of others are checked", () => {
    expect(checkParams({ supportedCatalogIds: [own], acceptsInlineCatalogs: false, later: 1 })).toBeUndefined();
    expect(checkParams({})).toBeUndefined();
    expect(checkParams({ supportedCatalogIds: own })?.path).toBe("/supportedCatalogIds");
    expect(checkParams({ supportedCatalogIds: [1] })?.path).toBe("/supportedCatalogIds/0");
    expect(checkParams({ acceptsInlineCatalogs: "yes" })?.path).toBe("/acceptsInlineCatalogs");
    expect(checkParams([])?.path).toBe("");
  });
});

describe("the client states its capabilities", () => {
  test.each<[A2uiVersion, unknown]>([
    ["0.8", { supportedCatalogIds: [own] }],
    ["0.9", { "v0.9": { supportedCatalogIds: [own] } }],
    ["0.9.1", { "v0.9.1": { supportedCatalogIds: [own] } }],
    ["0.9.1", { "v0.9": { supportedCatalogIds: [own] } }],
    ["0.10", { "v0.10": { supportedCatalogIds: [own] } }],
  ])("in %s as %j", (version, value) => {
    expect(checkCapabilities(version)(value)).toBeUndefined();
    expect(readCapabilities(version, value)).toEqual({ supportedCatalogIds: [own], inlineCatalogs: [] });
  });

  test("for several versions, each with its own", () => {
    const said = { supportedCatalogIds: ["a"], inlineCatalogs: [] };
    let value = writeCapabilities("0.9", said, undefined);
    value = writeCapabilities("0.8", { ...said, supportedCatalogIds: ["b"] }, value);
    value = writeCapabilities("0.10", { supportedCatalogIds: ["c"], inlineCatalogs: [inline] }, value);
    expect(value).toEqual({
      "v0.9": { supportedCatalogIds: ["a"] },
      supportedCatalogIds: ["b"],
      "v0.10": { supportedCatalogIds: ["c"], inlineCatalogs: [inline] },
    });
    expect(readCapabilities("0.8", value)?.supportedCatalogIds).toEqual(["b"]);
    expect(readCapabilities("0.10", value)?.inlineCatalogs).toEqual([inline]);
  });

  test("an error is named, and members of another version are ignored", () => {
    expect(checkCapabilities("0.9")({ "v0.9": { supportedCatalogIds: "a" } })?.path).toBe("/v0.9/supportedCatalogIds");
    expect(checkCapabilities("0.9")({ "v0.9": {} })?.path).toBe("/v0.9/supportedCatalogIds");
    expect(
      checkCapabilities("0.9")({ "v0.9": { supportedCatalogIds: [], inlineCatalogs: [{ components: {} }] } })?.path,
    ).toBe("/v0.9/inlineCatalogs/0/catalogId");
    expect(checkCapabilities("0.9")("v0.9")?.path).toBe("");
    expect(checkCapabilities("0.9")({ "v0.10": "anything" })).toBeUndefined();
    expect(readCapabilities("0.9", { "v0.10": { supportedCatalogIds: [own] } })).toBeUndefined();
  });

  test("the data models of surfaces have the format of the version", () => {
    const value = { version: "v0.9", surfaces: { main: { a: 1 } } };
    expect(checkDataModel("0.9")(value)).toBeUndefined();
    expect(readDataModel("0.9", value)).toEqual({ main: { a: 1 } });
    expect(readDataModel("0.10", value)).toEqual({});
    expect(checkDataModel("0.10")(value)).toBeUndefined();
    expect(checkDataModel("0.9")({ version: "v0.9", surfaces: { main: 1 } })?.path).toBe("/surfaces/main");
    expect(checkDataModel("0.9")({ version: "v0.9" })?.path).toBe("/surfaces");
  });
});

describe("catalogs are negotiated", () => {
  const ids = (...args: Parameters<typeof negotiate>) => negotiate(...args).map(({ catalogId }) => catalogId);
  const client = (supportedCatalogIds: readonly string[], inlineCatalogs = [inline]) => ({
    supportedCatalogIds,
    inlineCatalogs,
  });

  test("the client's first that the agent supports", () => {
    expect(ids("0.9", { supportedCatalogIds: ["a", "b", "c"] }, client(["x", "c", "b"], []))).toEqual(["c", "b"]);
  });

  test("none if none is shared", () => {
    expect(ids("0.9", { supportedCatalogIds: ["a"] }, client(["b"]))).toEqual([]);
    expect(ids("0.9", { supportedCatalogIds: ["a"] }, client([]))).toEqual([]);
    expect(ids("0.9", {}, client(["b"]))).toEqual([]);
  });

  test("inline catalogs if the agent accepts them, after shared ones", () => {
    const agent = { supportedCatalogIds: ["a"], acceptsInlineCatalogs: true };
    expect(negotiate("0.9", agent, client(["b"]))).toEqual([{ catalogId: inline.catalogId, inline }]);
    expect(ids("0.9", agent, client(["a"]))).toEqual(["a", inline.catalogId]);
    expect(ids("0.9", { ...agent, acceptsInlineCatalogs: false }, client(["b"]))).toEqual([]);
  });

  test("each one once", () => {
    const agent = { supportedCatalogIds: ["a"], acceptsInlineCatalogs: true };
    const own = { ...inline, catalogId: "a" };
    const wanted = client(
      Array.from({ length: 1000 }, () => "a"),
      [own, inline, inline],
    );
    expect(ids("0.9", agent, wanted)).toEqual(["a", inline.catalogId]);
  });

  test("the basic one if the client states none and the agent supports it", () => {
    expect(ids("0.9", { supportedCatalogIds: [own, basic] }, undefined)).toEqual([basic]);
    expect(ids("0.9", { supportedCatalogIds: [own] }, undefined)).toEqual([]);
  });
});

test.each(["v0_9", "v0_9_1"])(
  "the basic catalog of 0.9.1 is found by the id with %s, because its file and the examples differ",
  (at) => {
    const catalogId = `https://a2ui.org/specification/${at}/catalogs/basic/catalog.json`;
    const { params } = a2ui({ version: "0.9.1" });
    const client = { supportedCatalogIds: [catalogId], inlineCatalogs: [] };
    expect(negotiate("0.9.1", params as A2uiParams, client)).toEqual([{ catalogId }]);
  },
);
