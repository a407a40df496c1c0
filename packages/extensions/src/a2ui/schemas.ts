import type { JsonObject, StandardSchema } from "@parley/a2a/internal/model/index";
import { isJsonObject } from "../shared/values.ts";
import { versions, type A2uiVersion } from "./messages.ts";

/* Checks of messages. Like the schemas of A2UI, most objects allow no other members. */

/** A fault: a JSON pointer to the field, and a sentence. */
export interface Fault {
  readonly path: string;
  readonly message: string;
}

/** Returns the first fault of a value. */
export type Check = (value: unknown) => Fault | undefined;

type Members = Readonly<Record<string, Check>>;

const here = (message: string): Fault => ({ path: "", message });

/** A fault as seen from the containing object or list. */
export function inside(name: string | number, fault: Fault): Fault {
  return { path: `/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}${fault.path}`, message: fault.message };
}

export const text: Check = (value) => (typeof value === "string" ? undefined : here("must be a string"));
export const flag: Check = (value) => (typeof value === "boolean" ? undefined : here("must be true or false"));
const number: Check = (value) =>
  typeof value === "number" && Number.isFinite(value) ? undefined : here("must be a number");
export const anything: Check = (value) => (value === undefined ? here("is required") : undefined);
export const anyObject: Check = (value) => (isJsonObject(value) ? undefined : here("must be an object"));

const dateTime = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;
const time: Check = (value) =>
  typeof value === "string" && dateTime.test(value) && !Number.isNaN(Date.parse(value))
    ? undefined
    : here("must be an RFC 3339 time such as 2026-01-31T12:00:00Z");

export function oneOf(values: readonly string[]): Check {
  return (value) =>
    typeof value === "string" && values.includes(value) ? undefined : here(`must be ${values.join(" or ")}`);
}

/** A list of at least `min` items. */
export function list(item: Check, min = 0): Check {
  return (value) => {
    if (!Array.isArray(value)) return here("must be an array");
    if (value.length < min) return here("must not be empty");
    for (let at = 0; at < value.length; at += 1) {
      const fault = item(value[at]);
      if (fault !== undefined) return inside(at, fault);
    }
    return undefined;
  };
}

/** An object. `others` checks members without a check of their own; absent, such members are faults. */
export function object(required: Members, optional: Members = {}, others?: Check): Check {
  const names = Object.keys(required);
  return (value) => {
    if (!isJsonObject(value)) return here("must be an object");
    const missing = names.find((name) => !Object.hasOwn(value, name));
    if (missing !== undefined) return inside(missing, here("is required"));
    for (const [name, member] of Object.entries(value)) {
      const check = memberOf(required, name) ?? memberOf(optional, name) ?? others;
      const fault = check === undefined ? here("is not a field of this message") : check(member);
      if (fault !== undefined) return inside(name, fault);
    }
    return undefined;
  };
}

function memberOf(members: Members, name: string): Check | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

/** Members of a kind of message, in addition to its content. */
type More = Readonly<Record<string, { readonly required: Members; readonly optional?: Members }>>;

/** An object with `shared` members and exactly one of several kinds of content. */
function kinds(shared: Members, byKind: Members, more: More = {}): Check {
  const checks = new Map<string, Check>();
  for (const [kind, content] of Object.entries(byKind)) {
    const { required, optional } = more[kind] ?? {};
    checks.set(kind, object({ ...shared, [kind]: content, ...required }, optional));
  }
  const ofKind = objectThat((value) => {
    const kind = Object.keys(value).find((name) => checks.has(name)) ?? "";
    return checks.get(kind)?.(value);
  });
  return both(anyObject, exactlyOne(...checks.keys()), ofKind);
}

/** The first fault that any check finds. */
function both(...checks: readonly Check[]): Check {
  return (value) => {
    for (const check of checks) {
      const fault = check(value);
      if (fault !== undefined) return fault;
    }
    return undefined;
  };
}

/** A check of an object. */
export function objectThat(check: (value: JsonObject) => Fault | undefined): Check {
  return (value) => (isJsonObject(value) ? check(value) : here("must be an object"));
}

/** A condition on an object. */
function where(holds: (value: JsonObject) => boolean, message: string): Check {
  return objectThat((value) => (holds(value) ? undefined : here(message)));
}

/** An object with exactly one of these members. */
function exactlyOne(...names: readonly string[]): Check {
  return where(
    (value) => names.filter((name) => Object.hasOwn(value, name)).length === 1,
    `must have exactly one of ${names.join(", ")}`,
  );
}

/** A Standard Schema of a check. `read` converts a valid value for its readers. */
export function schemaOf<Value>(check: Check, read: (value: unknown) => Value): StandardSchema<Value> {
  return {
    "~standard": {
      version: 1,
      vendor: "parley",
      validate(value) {
        const fault = check(value);
        if (fault === undefined) return { value: read(value) };
        return { issues: [{ message: fault.message, path: fault.path.split("/").slice(1).map(nameOf) }] };
      },
    },
  };
}

/** Decodes a step of a JSON pointer. */
function nameOf(step: string): PropertyKey {
  return /^\d+$/.test(step) ? Number(step) : step.replaceAll("~1", "/").replaceAll("~0", "~");
}

/*
 * The message schemas of A2UI: `server_to_client.json` and `client_to_server.json` of each version. The properties of a
 * component depend on its catalog, and are not checked here.
 */

const surface = { surfaceId: text };

const component: Check = object({ id: text, component: text }, {}, anything);

const component08: Check = object(
  {
    id: text,
    component: both(
      object({}, {}, anyObject),
      where((value) => Object.keys(value).length === 1, "must have exactly one member, the type of the component"),
    ),
  },
  { weight: number },
);

/** An entry of a data model in 0.8. Its schema allows one level of maps, but agents send more. */
const entry08: Check = both(
  object(
    { key: text },
    { valueString: text, valueNumber: number, valueBoolean: flag, valueMap: (value) => list(entry08)(value) },
  ),
  exactlyOne("valueString", "valueNumber", "valueBoolean", "valueMap"),
);

const server08 = kinds(
  {},
  {
    beginRendering: object({ ...surface, root: text }, { catalogId: text, styles: anyObject }),
    surfaceUpdate: object({ ...surface, components: list(component08, 1) }),
    dataModelUpdate: object({ ...surface, contents: list(entry08) }, { path: text }),
    deleteSurface: object(surface),
  },
);

/** The messages of 0.9 and later. `create`: other members of `createSurface`. */
function surfaceMessages(create: Readonly<Record<string, Check>>) {
  return {
    createSurface: object({ ...surface, catalogId: text }, { sendDataModel: flag, ...create }),
    updateComponents: object({ ...surface, components: list(component, 1) }),
    updateDataModel: object(surface, { path: text, value: anything }),
    deleteSurface: object(surface),
  };
}

const functionCall: Check = object(
  { call: text, returnType: text, callableFrom: oneOf(["remoteOnly", "clientOrRemote"]) },
  { args: anyObject },
);

const actionResponse: Check = both(
  object({}, { value: anything, error: object({ code: text, message: text }) }),
  exactlyOne("value", "error"),
);

/** Messages that name their version. */
function versioned(version: A2uiVersion, ...content: [byKind: Kinds, more?: Parameters<typeof kinds>[2]]): Check {
  return kinds({ version: oneOf(versions[version].versions) }, ...content);
}

type Kinds = Parameters<typeof kinds>[1];

const server09 = surfaceMessages({ theme: anyObject });

const server10 = versioned(
  "0.10",
  {
    // Drafts of 0.10 had `theme`, the last one `surfaceProperties`.
    ...surfaceMessages({
      theme: anyObject,
      surfaceProperties: anyObject,
      components: list(component, 1),
      dataModel: anyObject,
    }),
    callFunction: functionCall,
    actionResponse,
  },
  {
    callFunction: { required: { functionCallId: text }, optional: { wantResponse: flag } },
    actionResponse: { required: { actionId: text } },
  },
);

const actionMembers = { name: text, ...surface, sourceComponentId: text, timestamp: time, context: anyObject };
const action: Check = object(actionMembers, {}, anything);
const action10: Check = object(actionMembers, { wantResponse: flag, actionId: text }, anything);

const failed = object({ code: text, ...surface, path: text, message: text });

/** An error of a client: `VALIDATION_FAILED` has only these members, other codes may have more. */
function clientError(generic: Check): Check {
  return (value) => (isJsonObject(value) && value["code"] === "VALIDATION_FAILED" ? failed : generic)(value);
}

const error09 = clientError(object({ code: text, message: text, ...surface }, {}, anything));
const error10 = clientError(
  both(
    object({ code: text, message: text }, { ...surface, functionCallId: text }, anything),
    exactlyOne("surfaceId", "functionCallId"),
  ),
);

const client08 = kinds({}, { userAction: action, error: anyObject });

const client09: Kinds = { action, error: error09 };

const client10 = versioned("0.10", {
  action: action10,
  error: error10,
  functionResponse: object({ functionCallId: text, call: text, value: anything }),
});

/** Checks a message of an agent. */
export const serverMessage: Readonly<Record<A2uiVersion, Check>> = {
  "0.8": server08,
  "0.9": versioned("0.9", server09),
  "0.9.1": versioned("0.9.1", server09),
  "0.10": server10,
};

/** Checks a message of a client. */
export const clientMessage: Readonly<Record<A2uiVersion, Check>> = {
  "0.8": client08,
  "0.9": versioned("0.9", client09),
  "0.9.1": versioned("0.9.1", client09),
  "0.10": client10,
};
