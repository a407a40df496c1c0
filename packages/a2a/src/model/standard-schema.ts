/**
 * A schema of any library that implements Standard Schema 1 (https://standardschema.dev): zod, valibot, ArkType and others. The
 * interface is declared here, as its page recommends, so no library is needed for it.
 *
 * @typeParam Output - What a value becomes that fits.
 */
export interface StandardSchema<Output = unknown> {
  /** The members of the standard. */
  readonly "~standard": {
    /** The version of the standard. */
    readonly version: 1;
    /** The name of the library. */
    readonly vendor: string;
    /** Checks a value, and may change it, as with a default. */
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** Types, for the compiler alone. */
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** What a schema says about a value. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** Why a value does not fit. */
export interface SchemaIssue {
  /** What is wrong. */
  readonly message: string;
  /** Where. Absent or empty: the value itself. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}
