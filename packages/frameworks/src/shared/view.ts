/** Members of a value that another library has made, or that was stored. Each may be missing. */
export function viewOf<Members extends object>(value: unknown): Partial<Members> {
  return Object(value) as Partial<Members>;
}
