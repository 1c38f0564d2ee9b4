import { basename } from 'node:path'
import { weightsStem } from './weights-file.ts'

/** Model names that torch-model-archiver accepts. */
export const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9_\-.]*$/

/** File name extensions of archives. */
export const ARCHIVE_SUFFIX = /\.(mar|model|tgz|tar\.gz)$/i

/**
 * Name of a model without a manifest, as in TorchServe: file or folder name without extension, with `_` for
 * every character other than letters, digits and `_`, and for a leading `_`.
 */
export function defaultModelName(location: string): string {
  return weightsStem(basename(location)).replace(ARCHIVE_SUFFIX, '').replace(/\W/g, '_')
}
