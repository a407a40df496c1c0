import { useSignal, type Signal } from "@preact/signals";

/* Shared code of the console's forms. */

interface Attempts {
  /** The reason why the last attempt failed. Empty: it did not fail. */
  readonly problem: Signal<string>;
  /** Does the work. If it fails, sets `problem`. */
  attempt(work: () => unknown): Promise<void>;
}

/** Work that the user starts and that may fail. `before`: a problem to show before the first attempt. */
export function useAttempt(before: string = ""): Attempts {
  const problem = useSignal(before);
  return {
    problem,
    async attempt(work) {
      problem.value = "";
      try {
        await work();
      } catch (thrown) {
        problem.value = thrown instanceof Error ? thrown.message : String(thrown);
      }
    },
  };
}

/** The reason why an attempt failed. Absent or empty: it did not fail. */
export function Problem({ text = "" }: { readonly text?: string | undefined }) {
  return text === "" ? null : (
    <p class="problem" role="alert">
      {text}
    </p>
  );
}

/** The text of each field of a form. An absent field is empty. */
export function textsOf(form: HTMLFormElement): (name: string) => string {
  const fields = new FormData(form);
  return (name) => {
    const given = fields.get(name);
    return typeof given === "string" ? given : "";
  };
}
