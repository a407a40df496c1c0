/** JSON text of one type of value. It was written, or checked, before it was stored, and is not checked again. */
export interface StoredJson<Value> {
  /** Parses a text. */
  read(text: string): Value;
  /** Writes a value. */
  write(value: Value): string;
}

/** The JSON of a type. */
export function storedJson<Value>(): StoredJson<Value> {
  return { read: (text) => JSON.parse(text) as Value, write: (value) => JSON.stringify(value) };
}
