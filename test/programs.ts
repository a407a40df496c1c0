/**
 * What Node is given to run a program in TypeScript, in a test: the program is compiled as it is read, the packages that it
 * imports are those that are built (test/built.ts).
 */
export const typescript: readonly string[] = ["--import", import.meta.resolve("tsx")];
