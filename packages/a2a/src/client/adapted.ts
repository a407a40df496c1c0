import type { ClientBinding } from "../transport/http/index.ts";
import { byVersion, type Codec } from "../wire/codec.ts";

/** A binding whose services behave as callers here expect, whatever the version (`Codec.adaptClient`). */
export function adapted(binding: ClientBinding, codecs: readonly Codec[]): ClientBinding {
  const known = byVersion(codecs);
  return {
    name: binding.name,
    versions: binding.versions,
    ...(binding.unusable !== undefined && { unusable: (url: string) => binding.unusable?.(url) }),
    open(target, version, host, card) {
      const service = binding.open(target, version, host, card);
      return known.get(version)?.adaptClient?.(service) ?? service;
    },
  };
}
