import { checkJsonBounds } from '../common/json-bounds.ts'

/** Elements that a manifest or another JSON file of an archive may have, as checkJsonBounds counts them. */
const MAX_ELEMENTS = 20_000

/** Parses JSON that strangers may have written. @throws Error for text that is not JSON or has too much in it */
export function parseArchiveJson(text: string): unknown {
  checkJsonBounds(Buffer.from(text), MAX_ELEMENTS)
  return JSON.parse(text) as unknown
}
