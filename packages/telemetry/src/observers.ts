import type {
  Begun,
  BegunDelivery,
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

/* Observers that are made of others. */

/** A member of an observer that is called at a beginning. */
type Begins<T> = (about: T) => Begun;
type Context = Pick<Observation, "run" | "trace" | "headers">;

/**
 * One observer out of several. Each is told everything, also when another one throws. The context of the first is around that of the next,
 * and the trace that is passed on is that of the last one that has one.
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
        const ends = new Errors().each(gauges.map((one) => () => one.gauges?.(read)));
        return () => new Errors().each(ends.map((end) => () => end?.())).at(0);
      },
    }),
  };
}

/** Calls several functions, whatever they throw, and keeps the first error until `tell`. */
class Errors {
  #first: { readonly error: unknown } | undefined;

  /** The results of those that did not throw. */
  each<T>(calls: readonly (() => T)[]): readonly T[] {
    return calls.flatMap((call) => {
      try {
        return [call()];
      } catch (error) {
        this.#first ??= { error };
        return [];
      }
    });
  }

  /** Throws the error, for the log. */
  tell(): void {
    if (this.#first !== undefined) throw this.#first.error;
  }
}

function tells<T>(given: readonly (((about: T) => void) | undefined)[]): ((about: T) => void) | undefined {
  const all = given.filter((one) => one !== undefined);
  if (all.length === 0) return undefined;
  return (about) => {
    const errors = new Errors();
    errors.each(all.map((one) => () => one(about)));
    errors.tell();
  };
}

function begins<T>(given: readonly (Begins<T> | undefined)[]): Begins<T> | undefined {
  const all = given.filter((one) => one !== undefined);
  const [only] = all;
  if (only === undefined || all.length === 1) return only;
  return (about) => {
    const errors = new Errors();
    const begun = errors.each(all.map((one) => () => one(about))).map(opened);
    const answering = begun.filter((one) => one.answered !== undefined);
    const yielding = begun.filter((one) => one.yielded !== undefined);
    return {
      ...joined(begun),
      ...(answering.length > 0 && {
        answered: (answer) => void errors.each(answering.map((one) => () => one.answered?.(answer))),
      }),
      ...(yielding.length > 0 && {
        yielded: (events) => void errors.each(yielding.map((one) => () => one.yielded?.(events))),
      }),
      end(error) {
        errors.each(begun.map((one) => () => one.end?.(error)));
        errors.tell();
      },
    };
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
    const begun = errors.each(all.map((one) => () => one(about))).map(openedDelivery);
    return {
      ...joined(begun),
      end(result) {
        errors.each(begun.map((one) => () => one.end?.(result)));
        errors.tell();
      },
    };
  };
}

function opened(begun: Begun): Observation {
  return typeof begun === "function" ? { end: begun } : (begun ?? {});
}

function openedDelivery(begun: BegunDelivery): DeliveryObservation {
  return typeof begun === "function" ? { end: begun } : (begun ?? {});
}

/** The contexts of several, one within the other. */
function joined(all: readonly Context[]): Context {
  const trace = all.findLast((one) => one.trace !== undefined)?.trace;
  const headers = Object.fromEntries(all.flatMap((one) => Object.entries(one.headers ?? {})));
  const running = all.filter((one) => one.run !== undefined);
  return {
    ...(trace !== undefined && { trace }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(running.length > 0 && {
      run: <T>(work: () => T): T =>
        running.reduceRight<() => T>((inner, one) => () => (one.run === undefined ? inner() : one.run(inner)), work)(),
    }),
  };
}
