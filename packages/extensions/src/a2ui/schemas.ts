import {
  exactlyOne,
  anyObject,
  anything,
  both,
  flag,
  isJsonObject,
  kinds,
  list,
  number,
  object,
  oneOf,
  text,
  time,
  where,
  type Check,
} from "./check.ts";
import { versions, type A2uiVersion } from "./messages.ts";

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
