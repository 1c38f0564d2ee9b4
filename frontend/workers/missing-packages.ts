import { ServeError } from '../../common/errors.ts'
import { notInstalled } from '../../common/texts.ts'
import { missingPackages } from '../../model-archiver/packages.ts'

/**
 * Node tells of the first package that is missing. This names all of them, so that one command installs them.
 * @param error why a handler did not load
 * @param handlerPath its module; undefined: it has none
 * @returns the error itself if it is another one, or if only that package is missing
 */
export async function withAllMissing(
  error: ServeError,
  handlerPath: string | undefined,
): Promise<ServeError> {
  if (handlerPath === undefined || error.code !== 'WORKER_START_FAILED' || error.absent === undefined)
    return error
  const names = await missingPackages(handlerPath).catch(() => [])
  if (names.length < 2) return error
  const { code, detail, publicCause } = error
  return new ServeError(code, notInstalled(names), {
    cause: error,
    ...(detail !== undefined && { detail }),
    ...(publicCause !== undefined && { publicCause }),
  })
}
