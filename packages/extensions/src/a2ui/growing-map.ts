/** A key that a later version added. */
const absent: unique symbol = Symbol("absent");

/** Maximum number of versions to search. Beyond it an older version gets its own map. */
const maxSteps = 32;

/**
 * An immutable map whose next version costs only its changes. All versions share the map of the newest one; each older
 * one keeps the overwritten values and a link to the next version. Keys are never removed, so those of an older version
 * come first.
 */
export class GrowingMap<Value> implements ReadonlyMap<string, Value> {
  readonly size: number;
  #map: Map<string, Value>;
  /** Overwritten values: what the next version set, as it was before. */
  #before: Map<string, Value | typeof absent> | undefined;
  #next: GrowingMap<Value> | undefined;

  /** @param map - Must not be changed by anyone else. */
  constructor(map: Map<string, Value> = new Map()) {
    this.#map = map;
    this.size = map.size;
  }

  /** The next version. This one is unchanged. */
  with(changes: ReadonlyMap<string, Value>): GrowingMap<Value> {
    // There is or was a next version already, so this is another branch.
    if (this.#next !== undefined) this.#detach();
    const before = new Map<string, Value | typeof absent>();
    for (const [key, value] of changes) {
      before.set(key, this.#map.has(key) ? (this.#map.get(key) as Value) : absent);
      this.#map.set(key, value);
    }
    this.#before = before;
    return (this.#next = new GrowingMap(this.#map));
  }

  get(key: string): Value | undefined {
    const found = this.#find(key);
    return found === absent ? undefined : found;
  }

  has(key: string): boolean {
    return this.#find(key) !== absent;
  }

  *entries(): MapIterator<[string, Value]> {
    let left = this.size;
    for (const key of this.#map.keys()) {
      if (left === 0) return;
      left -= 1;
      yield [key, this.get(key) as Value];
    }
  }

  *keys(): MapIterator<string> {
    for (const [key] of this.entries()) yield key;
  }

  *values(): MapIterator<Value> {
    for (const [, value] of this.entries()) yield value;
  }

  forEach(visit: (value: Value, key: string, map: ReadonlyMap<string, Value>) => void, self?: unknown): void {
    for (const [key, value] of this.entries()) visit.call(self, value, key, this);
  }

  [Symbol.iterator](): MapIterator<[string, Value]> {
    return this.entries();
  }

  #find(key: string): Value | typeof absent {
    const found = findFrom(this.#step(), key);
    if (found !== tooFar) return found;
    this.#detach();
    return this.#find(key);
  }

  #step(): Step<Value> {
    return {
      map: this.#map,
      before: this.#before,
      next: this.#next && (() => (this.#next as GrowingMap<Value>).#step()),
    };
  }

  #detach(): void {
    const later: (Map<string, Value | typeof absent> | undefined)[] = [];
    let step = this.#step();
    for (; step.next !== undefined; step = step.next()) later.push(step.before);
    const own = new Map(step.map);
    for (const before of later.toReversed()) {
      for (const [key, value] of before ?? []) {
        if (value === absent) own.delete(key);
        else own.set(key, value);
      }
    }
    this.#map = own;
    this.#next = this.#before = undefined;
  }
}

interface Step<Value> {
  readonly map: ReadonlyMap<string, Value>;
  readonly before: Map<string, Value | typeof absent> | undefined;
  readonly next: (() => Step<Value>) | undefined;
}

const tooFar: unique symbol = Symbol("too far");

function findFrom<Value>(first: Step<Value>, key: string): Value | typeof absent | typeof tooFar {
  let step = first;
  for (let count = 0; step.next !== undefined; count += 1) {
    if (count === maxSteps) return tooFar;
    const before = step.before?.get(key);
    if (before !== undefined) return before;
    step = step.next();
  }
  return step.map.has(key) ? (step.map.get(key) as Value) : absent;
}
