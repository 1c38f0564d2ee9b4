const MAX_ITEMS = 100

/** A part of a list, and the start of the next one if there may be more. */
export interface Page<T> {
  nextPageToken?: string
  items: T[]
}

/**
 * One page of a list. `limit` and `nextPageToken` out of range fall back to 100 and 0. As in TorchServe, a
 * full last page has a token, which leads to an empty page.
 */
export function pageOf<T>(list: readonly T[], limit = MAX_ITEMS, nextPageToken = 0): Page<T> {
  const size = limit < 0 || limit > MAX_ITEMS ? MAX_ITEMS : limit
  const offset = Math.max(0, nextPageToken)
  const items = list.slice(offset, offset + size)
  return offset + size > list.length ? { items } : { nextPageToken: String(offset + size), items }
}
