import type {
  Begun,
  DeliveryObservation,
  Observation,
  ObservedAppend,
  ObservedCall,
  ObservedCard,
  ObservedCommit,
  ObservedDelegation,
  ObservedLease,
  ObservedRequest,
  ObservedRetry,
  ObservedStep,
  ObservedTurn,
  Observer,
} from "@parley/a2a/internal/protocol/index";

/* Combines observers. */

/** A member of an observer that is called when something begins. */
type Begins<T> = (about: T) => Begun;
type Context = Pick<Observation, "run" | "trace" | "headers">;

/**
 * Combines several observers. Each receives every event, even if another one throws. The context of the first observer encloses the next
 * one's. The propagated trace is the trace of the last observer that has one.
 *
 * @example
 * ```ts
 * const metrics = prometheus();
 * await serve(agent, { observer: observers(telemetry(), metrics), routes: [metrics.route] });
 * ```
 */
export function observers(...all: readonly Observer[]): Observer {
  const call = begins<ObservedCall>(all.map((one) => one.call && ((about) => one.call?.(about))));
  const turn = begins<ObservedTurn>(all.map((one) => one.turn && ((about) => one.turn?.(about))));
  const commit = begins<ObservedCommit>(all.map((one) => one.commit && ((about) => one.commit?.(about))));
  const request = begins<ObservedRequest>(all.map((one) => one.request && ((about) => one.request?.(about))));
  const card = begins<ObservedCard>(all.map((one) => one.card && ((about) => one.card?.(about))));
  const step = begins<ObservedStep>(all.map((one) => one.step && ((about) => one.step?.(about))));
  const delegation = begins<ObservedDelegation>(
    all.map((one) => one.delegation && ((about) => one.delegation?.(about))),
  );
  const append = tells<ObservedAppend>(all.map((one) => one.append && ((about) => one.append?.(about))));
  const retry = tells<ObservedRetry>(all.map((one) => one.retry && ((about) => one.retry?.(about))));
  const lease = tells<ObservedLease>(all.map((one) => one.lease && ((about) => one.lease?.(about))));
  const delivery = deliveries(all.map((one) => one.delivery && ((about) => one.delivery?.(about))));
  const gauges = all.filter((one) => one.gauges !== undefined);
  return {
    ...(call && { call }),
    ...(turn && { turn }),
    ...(commit && { commit }),
    ...(request && { request }),
    ...(card && { card }),
    ...(step && { step }),
    ...(delegation && { delegation }),
    ...(append && { append }),
    ...(retry && { retry }),
    ...(lease && { lease }),
    ...(delivery && { delivery }),
    ...(gauges.length > 0 && {
      gauges: (read) => {
        const errors = new Errors();
        const ends = gauges.map((one) => errors.try(() => one.gauges?.(read)));
        return () => {
          for (const end of ends) errors.try(() => end?.());
          errors.tell();
        };
      },
    }),
  };
}

/** Collects the first error of several observers, so that each is called even if another one throws. */
class Errors {
  #first: { readonly error: unknown } | undefined;

  /** Returns the result of `call`; `undefined` if it throws. */
  try<T>(call: () => T): T | undefined {
    try {
      return call();
    } catch (error) {
      this.#first ??= { error };
      return undefined;
    }
  }

  get any(): boolean {
    return this.#first !== undefined;
  }

  /** Throws the first error, which the caller logs. */
  tell(): void {
    if (this.#first !== undefined) throw this.#first.error;
  }
}

function tells<T>(given: readonly (((about: T) => void) | undefined)[]): ((about: T) => void) | undefined {
  const all = given.filter((one) => one !== undefined);
  const [only] = all;
  if (only === undefined || all.length === 1) return only;
  return (about) => {
    const errors = new Errors();
    for (const one of all) errors.try(() => one(about));
    errors.tell();
  };
}

function begins<T>(given: readonly (Begins<T> | undefined)[]): Begins<T> | undefined {
  const all = given.filter((one) => one !== undefined);
  const [only] = all;
  if (only === undefined || all.length === 1) return only;
  return (about) => {
    const errors = new Errors();
    const begun: Observation[] = [];
    for (const one of all) {
      const opened = errors.try(() => one(about));
      if (opened) begun.push(typeof opened === "function" ? { end: opened } : opened);
    }
    const joined: Writable<Observation> = contextOf(begun);
    const [answers, yields] = [begun.some((one) => one.answered), begun.some((one) => one.yielded)];
    if (answers) joined.answered = (answer) => begun.forEach((one) => errors.try(() => one.answered?.(answer)));
    if (yields) joined.yielded = (events) => begun.forEach((one) => errors.try(() => one.yielded?.(events)));
    if (answers || yields || errors.any || begun.some((one) => one.end)) {
      joined.end = (error) => {
        for (const one of begun) errors.try(() => one.end?.(error));
        errors.tell();
      };
    }
    return joined;
  };
}

function deliveries(
  given: readonly (NonNullable<Observer["delivery"]> | undefined)[],
): Observer["delivery"] | undefined {
  const all = given.filter((one) => one !== undefined);
  const [only] = all;
  if (only === undefined || all.length === 1) return only;
  return (about) => {
    const errors = new Errors();
    const begun: DeliveryObservation[] = [];
    for (const one of all) {
      const opened = errors.try(() => one(about));
      if (opened) begun.push(typeof opened === "function" ? { end: opened } : opened);
    }
    return {
      ...contextOf(begun),
      end(result) {
        for (const one of begun) errors.try(() => one.end?.(result));
        errors.tell();
      },
    };
  };
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** The nested contexts of several observers. */
function contextOf(all: readonly Context[]): Writable<Context> {
  const joined: Writable<Context> = {};
  for (const one of all) {
    if (one.trace !== undefined) joined.trace = one.trace;
    if (one.headers !== undefined) joined.headers = { ...joined.headers, ...one.headers };
  }
  const [outermost, ...others] = all.filter((one) => one.run !== undefined);
  if (outermost === undefined) return joined;
  joined.run = <T>(work: () => T): T => {
    const inner = others.reduceRight<() => T>((within, one) => () => ran(one, within), work);
    return ran(outermost, inner);
  };
  return joined;
}

function ran<T>(one: Context, work: () => T): T {
  return one.run === undefined ? work() : one.run(work);
}
