/* What a page loads when it connects. */

export { connect } from "@parley/a2a";
