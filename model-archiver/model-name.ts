import { basename } from 'node:path'

/** Names that the archiver accepts, as in torch-model-archiver. */
export const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9_\-.]*$/

/** How the file name of an archive ends. */
export const ARCHIVE_SUFFIX = /\.(mar|model|tgz|tar\.gz)$/i

/**
 * The name of a model without a manifest: the file or folder name without its ending, with `_` for every
 * character that is not a letter, digit or `_`, and for a leading `_` (spec 6.2).
 */
export function defaultModelName(location: string): string {
  return basename(location).replace(ARCHIVE_SUFFIX, '').replace(/\W/g, '_')
}
