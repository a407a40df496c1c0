import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";

/* The messages of A2UI, as they are on the wire. */

/** A component of 0.9 and newer: its type, and its properties beside it. The catalog says which there are. */
export interface A2uiComponent {
  /** Identifier, unique in the surface. `root` is the root. */
  readonly id: string;
  /** Its type, such as `Text`. */
  readonly component: string;
  /** Its properties. One that is `undefined` is none: a list of several components has such types. */
  readonly [property: string]: JsonValue | undefined;
}

/** A component of 0.8: its type is the one key of `component`. */
export interface A2uiComponent08 {
  /** Identifier, unique in the surface. */
  readonly id: string;
  /** Its share of the space in a row or a column. */
  readonly weight?: number;
  /** The type as the one key, such as `{ "Text": { … } }`. */
  readonly component: JsonObject;
}

/** A component of a version. */
export type A2uiComponentOf<Version extends A2uiVersion> = Version extends "0.8" ? A2uiComponent08 : A2uiComponent;

/** An entry of a data model in 0.8. It has one value. */
export interface A2uiEntry08 {
  /** The name. */
  readonly key: string;
  /** A text. */
  readonly valueString?: string;
  /** A number. */
  readonly valueNumber?: number;
  /** A truth value. */
  readonly valueBoolean?: boolean;
  /** An object, as its entries. */
  readonly valueMap?: readonly A2uiEntry08[];
}

/** What an agent says in 0.8: one of these. */
export interface A2uiServerMessage08 {
  /** Shows a surface: `root` is the id of its first component. */
  readonly beginRendering?: {
    readonly surfaceId: string;
    readonly root: string;
    readonly catalogId?: string;
    readonly styles?: JsonObject;
  };
  /** Adds and replaces components. */
  readonly surfaceUpdate?: { readonly surfaceId: string; readonly components: readonly A2uiComponent08[] };
  /** Replaces the data at a path; without one, all of it. */
  readonly dataModelUpdate?: {
    readonly surfaceId: string;
    readonly path?: string;
    readonly contents: readonly A2uiEntry08[];
  };
  /** Removes a surface. */
  readonly deleteSurface?: { readonly surfaceId: string };
}

/** What an agent says in 0.9 and newer: one of these. */
export interface A2uiServerMessage {
  /** `v0.9`, `v0.9.1` or `v0.10`. */
  readonly version: string;
  /** Makes a surface. */
  readonly createSurface?: {
    readonly surfaceId: string;
    readonly catalogId: string;
    readonly theme?: JsonObject;
    /** 0.10: in place of `theme`. */
    readonly surfaceProperties?: JsonObject;
    readonly sendDataModel?: boolean;
    /** 0.10. */
    readonly components?: readonly A2uiComponent[];
    /** 0.10. */
    readonly dataModel?: JsonObject;
  };
  /** Adds and replaces components. */
  readonly updateComponents?: { readonly surfaceId: string; readonly components: readonly A2uiComponent[] };
  /** Sets the value at a path, or removes it where there is no value; without a path, the whole data model. */
  readonly updateDataModel?: { readonly surfaceId: string; readonly path?: string; readonly value?: JsonValue };
  /** Removes a surface. */
  readonly deleteSurface?: { readonly surfaceId: string };
  /** 0.10: calls a function of the client. */
  readonly callFunction?: JsonObject;
  /** 0.10: identifier of the call of a function. */
  readonly functionCallId?: string;
  /** 0.10: whether the client sends back what the function returns. */
  readonly wantResponse?: boolean;
  /** 0.10: answers an action that wanted a response. */
  readonly actionResponse?: { readonly value?: JsonValue; readonly error?: A2uiResponseError };
  /** 0.10: the action that is answered. */
  readonly actionId?: string;
}

/** Why an action has no result. */
export interface A2uiResponseError {
  /** For programs. */
  readonly code: string;
  /** For people. */
  readonly message: string;
}

/** What an agent of a version says. */
export type A2uiServerMessageOf<Version extends A2uiVersion> = Version extends "0.8"
  ? A2uiServerMessage08
  : A2uiServerMessage;

/** What the user did: `userAction` in 0.8, `action` in newer versions. */
export interface A2uiAction {
  /** Name of the action, as the component has it. */
  readonly name: string;
  /** The surface. */
  readonly surfaceId: string;
  /** The component. */
  readonly sourceComponentId: string;
  /** When it was, in RFC 3339. */
  readonly timestamp: string;
  /** The values that the component sends along. */
  readonly context: JsonObject;
  /** 0.10: whether the client waits for an `actionResponse`. */
  readonly wantResponse?: boolean;
  /** 0.10: identifier for the response. */
  readonly actionId?: string;
}

/** What a client could not do. In 0.8 it may have any members. */
export interface A2uiClientError {
  /** `VALIDATION_FAILED`, or a code of the client. */
  readonly code?: string;
  /** For people. */
  readonly message?: string;
  /** The surface. */
  readonly surfaceId?: string;
  /** JSON pointer to the wrong field, with `VALIDATION_FAILED`. */
  readonly path?: string;
  /** 0.10: the call of a function that failed. */
  readonly functionCallId?: string;
  /** What else the client says. */
  readonly [member: string]: JsonValue | undefined;
}

/** What a function of the client has returned (0.10). */
export interface A2uiFunctionResponse {
  /** The call. */
  readonly functionCallId: string;
  /** Name of the function. */
  readonly call: string;
  /** What it has returned. */
  readonly value: JsonValue;
}

/** What a client says: one of these. */
export interface A2uiClientMessage {
  /** From 0.9 on: `v0.9`, `v0.9.1` or `v0.10`. */
  readonly version?: string;
  /** 0.8: what the user did. */
  readonly userAction?: A2uiAction;
  /** From 0.9 on: what the user did. */
  readonly action?: A2uiAction;
  /** What the client could not do. */
  readonly error?: A2uiClientError;
  /** 0.10: what a function has returned. */
  readonly functionResponse?: A2uiFunctionResponse;
}

/** Why one message of a list was left out. The others of the list count (A2UI, "Processing Rules"). */
export interface A2uiProblem {
  /** Position of the message in its list. */
  readonly index: number;
  /** JSON pointer to the wrong field, in the message. */
  readonly path: string;
  /** What is wrong. */
  readonly message: string;
  /** The surface, where it is known. */
  readonly surfaceId?: string;
}

/** A version of A2UI that this extension speaks. Each has a URI of its own, and none is used in place of another. */
export type A2uiVersion = "0.8" | "0.9" | "0.9.1" | "0.10";

/** What is different between the versions, apart from their messages. */
interface VersionFacts {
  /** URI of the extension. */
  readonly uri: string;
  /** Media type of its parts that is written. Either is read. */
  readonly mediaType: string;
  /** `version` of a message: the first is written, all are read. Empty: messages have none. */
  readonly versions: readonly string[];
  /** The ids of the catalog that comes with the version: the first is written, and either is read. */
  readonly basicCatalogs: readonly [string, ...string[]];
}

const older = "application/json+a2ui";
const newer = "application/a2ui+json";

/** Every media type of A2UI: readers take both, whatever the version. */
export const mediaTypes: readonly string[] = [newer, older];

/** The versions, from the oldest to the newest. */
export const versions: Readonly<Record<A2uiVersion, VersionFacts>> = {
  "0.8": {
    uri: "https://a2ui.org/a2a-extension/a2ui/v0.8",
    mediaType: older,
    versions: [],
    basicCatalogs: ["https://a2ui.org/specification/v0_8/standard_catalog_definition.json"],
  },
  "0.9": {
    uri: "https://a2ui.org/a2a-extension/a2ui/v0.9",
    mediaType: older,
    versions: ["v0.9"],
    basicCatalogs: ["https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json"],
  },
  // Its messages are those of 0.9, and may say so. Its basic catalog says that it is the one of 0.9; the examples of its extension name it 0.9.1.
  "0.9.1": {
    uri: "https://a2ui.org/a2a-extension/a2ui/v0.9.1",
    mediaType: newer,
    versions: ["v0.9.1", "v0.9"],
    basicCatalogs: [
      "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json",
      "https://a2ui.org/specification/v0_9_1/catalogs/basic/catalog.json",
    ],
  },
  "0.10": {
    uri: "https://a2ui.org/a2a-extension/a2ui/v0.10",
    mediaType: newer,
    versions: ["v0.10"],
    basicCatalogs: ["https://a2ui.org/specification/v0_10/catalogs/basic/catalog.json"],
  },
};
