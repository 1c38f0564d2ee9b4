import { basename } from 'node:path'
import { isName } from '../common/names.ts'
import { weightsStem } from './weights-file.ts'

/** Model names that torch-model-archiver accepts. */
export const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9_\-.]*$/

/** File name extensions of archives. */
export const ARCHIVE_SUFFIX = /\.(mar|model|tgz|tar\.gz)$/i

/**
 * Name of a model without a manifest: that of its folder or weights, without the ending. For archives, as in
 * TorchServe, and where that is no valid name, `_` takes the place of all but letters, digits and `_`.
 */
export function defaultModelName(location: string): string {
  const file = basename(location)
  const stem = weightsStem(file).replace(ARCHIVE_SUFFIX, '')
  return isName(stem) && !ARCHIVE_SUFFIX.test(file) ? stem : stem.replace(/\W/g, '_')
}
