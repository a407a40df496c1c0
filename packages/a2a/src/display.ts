/**
 * Text that a stranger chose, made safe to show on a terminal, in a log, on a page.
 * @packageDocumentation
 */

export { cut, escapeControls, html, jsonLine, line, plain } from "./base/display.ts";
