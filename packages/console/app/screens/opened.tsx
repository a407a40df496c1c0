import { fileProblem, readOnly } from "../saved.ts";

/** A notice that the page shows a file, or the reason why the file could not be opened. */
export function Opened() {
  const saved = readOnly.value;
  return (
    <div class="opened" role="status">
      {fileProblem.value !== "" && <p class="problem">{fileProblem.value}</p>}
      {saved !== undefined && <p>Showing a session saved at {saved.savedAt}. Nothing is sent.</p>}
      <button
        type="button"
        class="small"
        onClick={() => (saved === undefined ? (fileProblem.value = "") : location.reload())}
      >
        Close
      </button>
    </div>
  );
}
