/**
 * SQLite's text is UTF-8 that some libraries cut at a NUL; JavaScript's text is neither. Names therefore stand in the
 * tables as the inside of a JSON string, which for nearly all of them is the name itself, and JSON without lone surrogates.
 */
export { escaped as encodeName, unescaped as decodeName, wellFormed as encodeJson } from "@parley/a2a/store";
