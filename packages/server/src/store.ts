/**
 * For authors of stores: the port, its rules, and the fold of a task as text. For operators of servers: stores for large files, and control of
 * pending and failed webhooks.
 * @packageDocumentation
 */

// The port.
export {
  type Store,
  type Owner,
  type Scope,
  type TaskKey,
  type ContextKey,
  type AppendItem,
  type TaskAppend,
  type ContextAppend,
  type TaskEffect,
  type ContextEffect,
  type LeaseEffect,
  type RunEffect,
  type StoredRun,
  type CheckpointEffect,
  type TaskStateEffect,
  type OnceEffect,
  type ContextStateEffect,
  type FeatureEffect,
  type FeatureState,
  type ContextMessageEffect,
  type AppendOutcome,
  type TaskHead,
  type Room,
  roomless,
  type LoadOptions,
  type Snapshot,
  type ListedTask,
  type ReadOptions,
  defaultPageBytes,
  type LogPage,
  type ListQuery,
  type ListPosition,
  type TaskPage,
  type OnceRecord,
  type ConversationOptions,
  type StoredConversation,
  type SaidMessage,
  type SaidArtifact,
  type ClaimQuery,
  type ClaimPosition,
  type ClaimPage,
  type StoreCondition,
  type StoreNode,
  type StoreNodes,
  type StoreNote,
  type StoreNotes,
  type StoreRates,
  type RateUse,
  type RateTaken,
  type StrandedRuns,
  type FeatureRow,
  type FeatureQuery,
  type DueFeature,
  type SweepOptions,
  type SweepReport,
  type SweepRule,
  deletesAllBefore,
  deletesBefore,
  sweptStates,
  type Upkeep,
  type TaskSelection,
  type OwnerQuery,
  type KnownContext,
  type KnownReply,
  type Removed,
  type RemovedTasks,
  lazyUpkeep,
  type StoreOperators,
  type OperatorQuery,
  operatorBounds,
  readChange,
} from "./store/index.ts";

// All data of an owner.
export { eraseOwner, exportOwner } from "./store/index.ts";
export type { Erasure, EraseOptions } from "./store/owner-data.ts";

// Events as JSON text.
export {
  type StoredEvent,
  type TaskPieces,
  assemble,
  assembleText,
  assembleLog,
  compact,
  messagesOf,
  artifactStarts,
} from "./store/index.ts";

// Bounds.
export { type StoreBounds, defaultStoreBounds, tooLarge } from "./store/index.ts";

// Conversations.
export {
  type MessagePlace,
  type ChunkPlace,
  type Chunks,
  type Picked,
  pickNewest,
  pickNewestSteps,
  inOrder,
} from "./store/index.ts";

// The fold of a log as text.
export { type Fragments, type TaskText, type SnapshotText, snapshotOf, snapshotFrom, taskFrom } from "./store/index.ts";

// Wake-ups between the nodes of a cluster.
export {
  type Wakeup,
  type WakeupListener,
  freeRuns,
  changedBy,
  WakeupBatch,
  type WakeupBatchOptions,
  type ReceivedWakeup,
} from "./store/wakeup.ts";

// Pages.
export { PageBudget, fitting } from "./store/index.ts";
export { NeedsRoom, PageRoom, withRoom } from "./store/index.ts";

// Appending: the rules.
export {
  type Refusal,
  type ReadRecord,
  recordBytes,
  type ReadItem,
  readItem,
  readItems,
  baseOf,
  decide,
} from "./store/index.ts";
export { type FeatureBounds, featureBounds, type FeatureLookup, refuseFeatures } from "./store/index.ts";
export { unavailable } from "./store/index.ts";

// Helpers.
export { BoundedMap, memoryOf, type MapBounds } from "@parley/a2a/internal/base/bounded-map";
export { escaped, unescaped, wellFormed } from "@parley/a2a/internal/base/json-text";
export { utf8Length } from "@parley/a2a/internal/base/index";

// Full text search: the searched texts of a task, and its words.
export type { TaskSearch, SearchTerm, SearchQuery, SearchPage, SearchHit, SearchSnippet } from "./store/index.ts";
export {
  isSearched,
  mainWords,
  maxSearchTerms,
  maxSearchWords,
  searchBounds,
  searchPoints,
  SearchTexts,
  searchTerms,
  searchWords,
  piecesText,
  type SearchPieces,
  type SearchText,
} from "./store/search.ts";
export { maxSnippets, Snippets } from "./store/snippets.ts";

// Control of pending and failed webhooks.
export { pushOperator, type PushOperatorOptions } from "./push/operator.ts";
export type { PushOperator, PushEntry, PushProblem, RefusedDelivery } from "./push/index.ts";

// Stores for large files: the port, S3 buckets, and deletion by owner.
export type { BlobContent, BlobEntry, BlobLink, BlobPage, BlobQuery, BlobRange, BlobStore } from "./blobs/port.ts";
export { s3Blobs, type S3BlobsOptions, type S3Like } from "./blobs/s3.ts";
export { checkBlobKey } from "./blobs/port.ts";
export { deleteBlobsOf, deleteIncomingBlobs, type BlobScope } from "./blobs/deletion.ts";
export { withBlobs } from "./blobs/deliver.ts";
export { blobsBelongTo } from "./blobs/deletion.ts";
