import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";

/* The messages of A2UI on the wire. */

/** A component of 0.9 and later: its type and properties. The catalog defines them. */
export interface A2uiComponent {
  /** Identifier, unique in the surface. `root` is the root. */
  readonly id: string;
  /** Its type, such as `Text`. */
  readonly component: string;
  /** Its properties. `undefined` means absent, which TypeScript infers for lists of several components. */
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
  /** A boolean. */
  readonly valueBoolean?: boolean;
  /** An object, as its entries. */
  readonly valueMap?: readonly A2uiEntry08[];
}

/** A message of an agent in 0.8. It has exactly one member. */
export interface A2uiServerMessage08 {
  /** Shows a surface. `root` is the id of its root component. */
  readonly beginRendering?: {
    readonly surfaceId: string;
    readonly root: string;
    readonly catalogId?: string;
    readonly styles?: JsonObject;
  };
  /** Adds or replaces components. */
  readonly surfaceUpdate?: { readonly surfaceId: string; readonly components: readonly A2uiComponent08[] };
  /** Replaces the data at a path; without a path, all data. */
  readonly dataModelUpdate?: {
    readonly surfaceId: string;
    readonly path?: string;
    readonly contents: readonly A2uiEntry08[];
  };
  /** Removes a surface. */
  readonly deleteSurface?: { readonly surfaceId: string };
}

/** A message of an agent in 0.9 and later. It has exactly one kind of content. */
export interface A2uiServerMessage {
  /** `v0.9`, `v0.9.1` or `v0.10`. */
  readonly version: string;
  /** Creates a surface. */
  readonly createSurface?: {
    readonly surfaceId: string;
    readonly catalogId: string;
    readonly theme?: JsonObject;
    /** 0.10: instead of `theme`. */
    readonly surfaceProperties?: JsonObject;
    readonly sendDataModel?: boolean;
    /** 0.10. */
    readonly components?: readonly A2uiComponent[];
    /** 0.10. */
    readonly dataModel?: JsonObject;
  };
  /** Adds or replaces components. */
  readonly updateComponents?: { readonly surfaceId: string; readonly components: readonly A2uiComponent[] };
  /** Sets the value at a path, or removes it if `value` is absent; without a path, the whole data model. */
  readonly updateDataModel?: { readonly surfaceId: string; readonly path?: string; readonly value?: JsonValue };
  /** Removes a surface. */
  readonly deleteSurface?: { readonly surfaceId: string };
  /** 0.10: calls a function of the client. */
  readonly callFunction?: JsonObject;
  /** 0.10: id of the call. */
  readonly functionCallId?: string;
  /** 0.10: whether the client sends back the result. */
  readonly wantResponse?: boolean;
  /** 0.10: the response to an action. */
  readonly actionResponse?: { readonly value?: JsonValue; readonly error?: A2uiResponseError };
  /** 0.10: id of that action. */
  readonly actionId?: string;
}

/** Why an action has no result. */
export interface A2uiResponseError {
  /** For programs. */
  readonly code: string;
  /** For people. */
  readonly message: string;
}

/** A message of an agent in a version. */
export type A2uiServerMessageOf<Version extends A2uiVersion> = Version extends "0.8"
  ? A2uiServerMessage08
  : A2uiServerMessage;

/** A user action: `userAction` in 0.8, `action` later. */
export interface A2uiAction {
  /** Name of the action in the component. */
  readonly name: string;
  /** The surface. */
  readonly surfaceId: string;
  /** The component. */
  readonly sourceComponentId: string;
  /** Time, in RFC 3339. */
  readonly timestamp: string;
  /** Values sent by the component. */
  readonly context: JsonObject;
  /** 0.10: whether the client waits for an `actionResponse`. */
  readonly wantResponse?: boolean;
  /** 0.10: id for the response. */
  readonly actionId?: string;
}

/** An error of a client. In 0.8 it may have any members. */
export interface A2uiClientError {
  /** `VALIDATION_FAILED`, or a code of the client. */
  readonly code?: string;
  /** For people. */
  readonly message?: string;
  /** The surface. */
  readonly surfaceId?: string;
  /** JSON pointer to the invalid field, with `VALIDATION_FAILED`. */
  readonly path?: string;
  /** 0.10: id of the failed call. */
  readonly functionCallId?: string;
  /** Other members. */
  readonly [member: string]: JsonValue | undefined;
}

/** The result of a function of the client (0.10). */
export interface A2uiFunctionResponse {
  /** The call. */
  readonly functionCallId: string;
  /** Name of the function. */
  readonly call: string;
  /** Its result. */
  readonly value: JsonValue;
}

/** A message of a client. It has exactly one kind of content. */
export interface A2uiClientMessage {
  /** From 0.9: `v0.9`, `v0.9.1` or `v0.10`. */
  readonly version?: string;
  /** 0.8: a user action. */
  readonly userAction?: A2uiAction;
  /** From 0.9: a user action. */
  readonly action?: A2uiAction;
  /** An error of the client. */
  readonly error?: A2uiClientError;
  /** 0.10: the result of a function. */
  readonly functionResponse?: A2uiFunctionResponse;
}

/** Why one message of a list was dropped. Other messages still apply (A2UI, "Processing Rules"). */
export interface A2uiProblem {
  /** Index of the message in its list. */
  readonly index: number;
  /** JSON pointer to the invalid field in the message. */
  readonly path: string;
  /** A description of the problem. */
  readonly message: string;
  /** The surface, if known. */
  readonly surfaceId?: string;
}

/** A version of A2UI that this extension supports. Each has its own URI and never replaces another. */
export type A2uiVersion = "0.8" | "0.9" | "0.9.1" | "0.10";

/** Differences between the versions, apart from their messages. */
interface VersionFacts {
  readonly uri: string;
  /** The media type to write. Both are read. */
  readonly mediaType: string;
  /** Values of `version` in messages: the first is written, all are read. Empty: messages have no `version`. */
  readonly versions: readonly string[];
  /** Ids of the basic catalog: the first is written, all are read. */
  readonly basicCatalogs: readonly [string, ...string[]];
}

const older = "application/json+a2ui";
const newer = "application/a2ui+json";

/** The media types of A2UI. Readers accept both in every version. */
export const mediaTypes: readonly string[] = [newer, older];

/** The versions, oldest first. */
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
  // It has the messages of 0.9, which may state either version. Its basic catalog has the id of 0.9; examples use 0.9.1.
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
