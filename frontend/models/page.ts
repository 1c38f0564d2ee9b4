const MAX_ITEMS = 100

/** A part of a list, and where the next one starts if there may be more. */
export interface Page<T> {
  nextPageToken?: string
  items: T[]
}

/**
 * One page of a list (spec 1.8). `limit` and `nextPageToken` out of range fall back to 100 and 0. When the last page is full there is
 * a token to an empty one: TorchServe's way.
 */
export function pageOf<T>(list: readonly T[], limit = MAX_ITEMS, nextPageToken = 0): Page<T> {
  const size = limit < 0 || limit > MAX_ITEMS ? MAX_ITEMS : limit
  const offset = Math.max(0, nextPageToken)
  const items = list.slice(offset, offset + size)
  return offset + size > list.length ? { items } : { nextPageToken: String(offset + size), items }
}
