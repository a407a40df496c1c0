/** Members of an untyped value, from another library or the store. Any member may be missing. */
export function viewOf<Members extends object>(value: unknown): Partial<Members> {
  return Object(value) as Partial<Members>;
}
