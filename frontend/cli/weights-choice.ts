import { basename } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import {
  ARCHIVE_SUFFIX,
  GGUF,
  isLaterPart,
  partNames,
  weightsStem,
} from '../../model-archiver/model-names.ts'

/** How the user names one file of a repository. */
export interface Wanted {
  /** `org/name`, for messages. */
  readonly repository: string
  /** Path of the file, or its last part. */
  readonly file?: string
  /** Part of the file's name: a quantization such as Q4_K_M. */
  readonly tag?: string
}

/** Part of a vision model, which is no model by itself. */
const PROJECTOR = /mmproj/i
const QUANTIZATION = /(?:^|[-_.])((?:I?Q\d\w*|TQ\d\w*|MXFP4\w*|BF16|F16|F32))$/i

/**
 * Chooses the file to serve, with its further parts if the model is in parts.
 * @param paths all files of the repository
 * @throws ServeError MODEL_NOT_FOUND that says which there are
 */
export function chooseWeights(paths: readonly string[], wanted: Wanted): string[] {
  const { repository, file, tag } = wanted
  if (file !== undefined) return withParts(paths, namedFile(paths, repository, file), repository)
  const models = paths.filter((path) => GGUF.test(path) && !isLaterPart(path) && !PROJECTOR.test(path))
  if (models.length === 0) throw notFound(`${repository} has no .gguf file${instead(paths)}`)
  const found = tag === undefined ? models : models.filter((path) => hasTag(path, tag))
  if (found.length === 1) return withParts(paths, found[0]!, repository)
  if (found.length === 0) throw notFound(`${repository} has no .gguf file ${tag}: it has ${listed(models)}`)
  const which = listed(found)
  throw notFound(
    `${repository} has ${found.length} .gguf files${tag === undefined ? '' : ` ${tag}`}: ${which}. Name one as ${repository}:TAG or with --file`,
  )
}

function namedFile(paths: readonly string[], repository: string, file: string): string {
  const found = paths.filter((path) => path === file || basename(path) === file)
  const [first] = found
  if (first === undefined || found.length > 1)
    throw notFound(
      `${repository} has ${found.length === 0 ? 'no' : 'several'} ${file}: it has ${listed(paths)}`,
    )
  if (GGUF.test(first) || ARCHIVE_SUFFIX.test(first)) return first
  throw notFound(`${file} is not supported: it must be a .gguf file or an archive (.mar, .tar.gz)`)
}

/** A tag is a whole part of the name, so that Q4_K does not mean Q4_K_M. */
function hasTag(path: string, tag: string): boolean {
  const stem = weightsStem(path).toLowerCase()
  const text = tag.toLowerCase()
  return stem === text || ['-', '_', '.', '/'].some((mark) => stem.endsWith(`${mark}${text}`))
}

function withParts(paths: readonly string[], first: string, repository: string): string[] {
  const folder = first.slice(0, first.length - basename(first).length)
  const parts = partNames(basename(first)).map((name) => `${folder}${name}`)
  const known = new Set(paths)
  const missing = parts.find((part) => !known.has(part))
  if (missing !== undefined) throw notFound(`${repository} lacks ${missing}, a part of the model ${first}`)
  return parts
}

/** Tags where the names have them, since they are what a user types. */
function listed(paths: readonly string[]): string {
  const tags = paths.map((path) => QUANTIZATION.exec(weightsStem(path))?.[1])
  const allTagged = tags.every((tag) => tag !== undefined) && new Set(tags).size === tags.length
  const shown = (allTagged ? tags : paths).slice(0, MAX_LISTED)
  const more = paths.length - shown.length
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

const MAX_LISTED = 40

function instead(paths: readonly string[]): string {
  const safetensors = paths.some((path) => path.endsWith('.safetensors'))
  const archives = paths.filter((path) => ARCHIVE_SUFFIX.test(path))
  if (archives.length > 0) return `; it has ${listed(archives)}, which --file can name`
  return safetensors
    ? '; .safetensors files are not supported: look for a repository of the same model with GGUF in its name'
    : ''
}

function notFound(message: string): ServeError {
  return new ServeError('MODEL_NOT_FOUND', message)
}
