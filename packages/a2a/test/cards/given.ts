import type { AgentCard } from "../../src/model/index.ts";

/** A card with a value for every member, including non-ASCII text. */
export const fullCard: AgentCard = {
  name: "Météo \u{1f326}",
  description: "Says whether it will rain.",
  supportedInterfaces: [
    { url: "https://agents.example.com/weather", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    { url: "agents.example.com:443", protocolBinding: "GRPC", tenant: "north", protocolVersion: "1.0" },
  ],
  provider: { url: "https://example.com", organization: "Example" },
  version: "1.2.3",
  documentationUrl: "https://example.com/docs",
  capabilities: {
    streaming: true,
    pushNotifications: false,
    extensions: [
      { uri: "urn:example:ext", required: true, params: { level: 0.000001, list: [1e30, { b: 1, a: "x" }] } },
    ],
  },
  securitySchemes: {
    oauth: {
      oauth2SecurityScheme: {
        flows: { clientCredentials: { tokenUrl: "https://id.example.com/token", scopes: { ask: "Ask" } } },
      },
    },
  },
  securityRequirements: [{ schemes: { oauth: { list: ["ask"] } } }],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "rain", name: "Rain", description: "Rain here", tags: ["weather"] }],
};

/** The same card for a caller with an API key, so its requirement has no scopes. */
export const keyCard: AgentCard = {
  ...fullCard,
  securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "x-api-key" } } },
  securityRequirements: [{ schemes: { key: { list: [] } } }],
};

/** The same card with empty required members. */
export const emptyCard: AgentCard = {
  ...fullCard,
  description: "",
  skills: [{ id: "rain", name: "Rain", description: "Rain here", tags: [] }],
};

/** Copies a card, so that a test can change the copy. */
export function copyOf<Card extends object>(card: Card): Card & Record<string, unknown> {
  return structuredClone(card) as Card & Record<string, unknown>;
}
