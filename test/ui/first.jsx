import { createRoot } from "react-dom/client";
import { Travel } from "ag-ui.md:0";

/* The first page of docs/ag-ui.md. */

createRoot(document.body.appendChild(document.createElement("div"))).render(<Travel />);
