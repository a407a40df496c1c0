/* The chunk that a page loads when it connects. */

export { connect } from "@parley/a2a";
