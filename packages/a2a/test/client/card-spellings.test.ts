import { describe, expect, it } from "vitest";
import { connect } from "../../src/client/index.ts";
import { cardOf, jsonRpcAt } from "./support.ts";

/** Tests that clients read the security of a card in other SDKs' spellings (A2A 1.0 §4.5). */

const read = async (more: object) => (await connect({ ...cardOf([jsonRpcAt("https://a.example.com")]), ...more })).card;

describe("the card of a server", () => {
  it("of the JavaScript SDK 1.3 has unions as in its memory", async () => {
    const flow = { tokenUrl: "https://login.example.com/token", refreshUrl: "", scopes: { chat: "Talk" } };
    const union = ($case: string, value: object) => ({ $case, value });
    const { securitySchemes } = await read({
      securitySchemes: {
        key: { scheme: union("apiKeySecurityScheme", { description: "", location: "header", name: "x-key" }) },
        login: {
          scheme: union("oauth2SecurityScheme", {
            description: "",
            flows: { flow: union("clientCredentials", flow) },
            oauth2MetadataUrl: "",
          }),
        },
      },
    });
    expect(securitySchemes).toEqual({
      key: { apiKeySecurityScheme: { description: "", location: "header", name: "x-key" } },
      login: { oauth2SecurityScheme: { description: "", flows: { clientCredentials: flow }, oauth2MetadataUrl: "" } },
    });
  });

  it("of the Go SDK 2.3 has scopes without the member `list`, in the card and its skills", async () => {
    const securityRequirements = [{ schemes: { login: ["chat", "admin"], key: [] } }];
    const skill = { id: "s", name: "S", description: "d", tags: [], securityRequirements };
    const card = await read({ securityRequirements, skills: [skill] });
    const right = [{ schemes: { login: { list: ["chat", "admin"] }, key: { list: [] } } }];
    expect([card.securityRequirements, card.skills[0]?.securityRequirements]).toEqual([right, right]);
  });

  it("of the Go SDK 2.3 with both shapes has schemes that only the older shape declares", async () => {
    const card = await read({
      url: "https://a.example.com/0.3",
      protocolVersion: "0.3",
      preferredTransport: "JSONRPC",
      securitySchemes: {
        key: { type: "apiKey", in: "header", name: "x-key", apiKey: { location: "header", name: "x-key" } },
        own: { httpAuthSecurityScheme: { scheme: "Bearer" } },
      },
      security: [{ key: [] }],
      securityRequirements: [{ schemes: { key: [] } }],
    });
    expect(card.securitySchemes).toMatchObject({
      key: { apiKeySecurityScheme: { location: "header", name: "x-key" } },
      own: { httpAuthSecurityScheme: { scheme: "Bearer" } },
    });
    expect(card.supportedInterfaces.map(({ protocolVersion }) => protocolVersion)).toEqual(["1.0", "0.3"]);
  });

  it("of an unknown SDK is still rejected if it is invalid", async () => {
    for (const securityRequirements of ["x", [1], [{ schemes: "x" }], [{ schemes: { key: "x" } }]]) {
      await expect(read({ securityRequirements })).rejects.toMatchObject({ code: "InvalidResponse" });
    }
  });
});
