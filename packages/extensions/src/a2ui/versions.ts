/** A version of A2UI that this extension speaks. Each has a URI of its own, and none is used in place of another. */
export type A2uiVersion = "0.8" | "0.9" | "0.9.1" | "0.10";

/** What is different between the versions, apart from their messages. */
export interface VersionFacts {
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
