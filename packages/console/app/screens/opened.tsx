import { fileProblem, readOnly } from "../saved.ts";

/** Says that a file is shown, or why it is not. */
export function Opened() {
  const saved = readOnly.value;
  return (
    <div class="opened" role="status">
      {fileProblem.value !== "" && <p class="problem">{fileProblem.value}</p>}
      {saved !== undefined && <p>A session that was saved at {saved.savedAt} is shown. Nothing is sent.</p>}
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
