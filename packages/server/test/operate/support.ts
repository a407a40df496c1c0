import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { onTestFinished } from "vitest";
import { callContext } from "@parley/testing";
import { defineAgent } from "../../src/agent/index.ts";
import { createHandler, type Handler, type HandlerOptions } from "../../src/handler.ts";
import { openApi } from "../../src/operate/openapi.ts";
import type { ShownTask } from "../../src/operate/port.ts";
import { operatorRoutes } from "../../src/operate/routes.ts";
import { memoryStore, type Store } from "../../src/store/index.ts";

type OnMessage = Parameters<typeof defineAgent>[0]["onMessage"];

const url = "http://127.0.0.1:4000";

interface Answer<Body> {
  readonly status: number;
  readonly body: Body;
}

/** The API document. These tests check every response against this document. */
export const document = openApi(`${url}/ops`) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: object;
};
interface Operation {
  readonly responses: Responses;
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: object } } };
}
interface ApiResponse {
  readonly description: string;
  readonly content: { readonly "application/json": { readonly schema: object } };
}
type Responses = Readonly<Record<string, ApiResponse>>;

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);

/** Returns the reason why a value does not match a schema of the document, or `undefined` if it matches. */
export function unlikeSchema(schema: object | false, value: unknown): string | undefined {
  const whole = schema && { ...schema, components: document.components };
  return ajv.validate(whole, value) ? undefined : ajv.errorsText();
}

/** Returns the reason why a response does not match the document, or `undefined` if it matches. */
export function unlike(method: string, path: string, status: number, body: unknown): string | undefined {
  const schema = document.paths[path]?.[method.toLowerCase()]?.responses[status]?.content["application/json"].schema;
  return schema === undefined ? `${method} ${path} has no answer ${status}` : unlikeSchema(schema, body);
}

export interface Served {
  readonly handler: Handler;
  readonly store: Store;
  /** Sends a message without waiting for its task. */
  send(text: string, more?: object): Promise<string>;
  stateOf(taskId: string): Promise<string | undefined>;
  /** Calls the API. Throws if the response does not match the document. */
  ops<Body = Record<string, unknown>>(
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<Answer<Body>>;
  why(taskId: string): Promise<ShownTask["why"]>;
}

/** Starts a server with its operators' API. */
export function serve(onMessage: OnMessage, options: Partial<HandlerOptions> = {}): Served {
  const { store = memoryStore() } = options;
  const agent = defineAgent({
    name: "test",
    description: "a test",
    version: "1",
    skills: [],
    resumable: true,
    mayReplyDirectly: false,
    onMessage,
  });
  const handler = createHandler(agent, {
    publicUrl: url,
    store,
    operators: true,
    facts: () => ({ remoteAddress: "127.0.0.1" }),
    pollInterval: 10,
    ...options,
  });
  onTestFinished(() => handler.close());
  const [service] = handler.host.services.values();
  if (service === undefined) throw new Error("no agent is served");
  const served: Served = {
    handler,
    store,
    async send(text, more = {}) {
      const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }], ...more } as const;
      const request = { message, configuration: { returnImmediately: true } };
      const { payload } = await service.call("SendMessage", request, callContext());
      return payload.value.task?.id ?? "";
    },
    stateOf: async (taskId) => (await store.head({ agent: "/" }, taskId))?.state,
    async ops<Body>(path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer<Body>> {
      const method = body === undefined ? "GET" : "POST";
      const init = body === undefined ? {} : { body: JSON.stringify(body) };
      const response = await handler.fetch(
        new Request(`${url}/ops${path}`, {
          method,
          headers: { "content-type": "application/json", ...headers },
          ...init,
        }),
      );
      const answer = (await response.json()) as Body;
      const [route = ""] = path.split("?");
      const wrong = operatorRoutes.some((each) => each.path === route)
        ? unlike(method, route, response.status, answer)
        : undefined;
      if (wrong !== undefined)
        throw new Error(`${method} ${path} ${response.status}: ${wrong}\n${JSON.stringify(answer)}`);
      return { status: response.status, body: answer };
    },
    async why(taskId) {
      const query = new URLSearchParams({ agent: "/", taskId });
      return (await served.ops<ShownTask>(`/v1/why?${query.toString()}`)).body.why;
    },
  };
  return served;
}

/** Resolves once the condition holds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await condition()); tries += 1) {
    if (tries > 500) throw new Error("the condition does not hold");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Creates a gate, which is closed until `open()`. */
export function gate(): { readonly open: () => void; readonly passed: Promise<void> } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { open, passed };
}
