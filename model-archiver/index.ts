/**
 * What programs import from `torchserve-ts/archiver` to pack models.
 *
 * @example
 * ```ts
 * import { generateModelArchive } from 'torchserve-ts/archiver'
 *
 * await generateModelArchive({
 *   modelName: 'story',
 *   version: '1.0',
 *   handler: 'handler.ts',
 *   exportPath: 'model_store',
 * })
 * ```
 */
import { createArchive, type ArchiveOptions } from './pack.ts'

/** Options of torch-model-archiver, as TorchServe's class of that name. */
export type ModelArchiverConfig = ArchiveOptions

/**
 * Packs a handler and a model's files into an archive.
 * @returns its absolute path
 * @throws ServeError INVALID_ARGUMENT for invalid options, INVALID_MODEL for a handler that cannot be bundled
 */
export function generateModelArchive(config: ModelArchiverConfig): Promise<string> {
  return createArchive(config)
}

export type { Runtime } from './handler-entry.ts'
export type { ArchiveFormat } from './write-archive.ts'
