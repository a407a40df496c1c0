/* Versions of a framework that an adapter supports. */

/** A range of major versions: from `min`, below `below`. */
export interface SupportedVersions {
  /** Name of the package. */
  readonly name: string;
  /** Lowest major version. */
  readonly min: number;
  /** First major version that is not supported. */
  readonly below: number;
}
