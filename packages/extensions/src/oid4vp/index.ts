/**
 * OID4VP in-task authorization (experimental extension of A2A, v1): agents that ask for verifiable credentials in a task, and clients
 * whose wallets present them.
 * @packageDocumentation
 */

export { type PresentationInit, type Presentations, oid4vp, oid4vpWith, type Oid4vpExtension } from "./extension.ts";
export {
  presentWith,
  type PresentationRequest,
  type PresentationWallet,
  type PresentingClient,
  type PresentOptions,
} from "./present.ts";
export {
  type WalletSchemesOptions,
  oid4vpUri,
  readOid4vpRequest,
  walletUrl,
  type Oid4vpMetadata,
  type Oid4vpParams,
  type Oid4vpRequest,
} from "./request.ts";
