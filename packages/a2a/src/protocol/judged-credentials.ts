import type { UniversalRequest } from "./http.ts";

/**
 * Which credentials of a request were right, by the places where they were. A request with several of them may be answered for one, so
 * that its answer does not tell that another was a guess. The limit of guesses has to know.
 */
const judged = new WeakMap<UniversalRequest, Record<string, boolean>>();

/**
 * Keeps whether credentials were right. Where several schemes read the same place, credentials that are right for one of them are right.
 *
 * @param place - Where they are in the request: `authorization`, `header x-api-key`.
 */
export function judgeCredentials(request: UniversalRequest, place: string, isRight: boolean): void {
  const places = judged.get(request);
  if (places === undefined) judged.set(request, { [place]: isRight });
  else places[place] = isRight || places[place] === true;
}

/** Whether a request has credentials that are wrong for every scheme that has checked them. */
export function hasWrongCredentials(request: UniversalRequest): boolean {
  return Object.values(judged.get(request) ?? {}).includes(false);
}
