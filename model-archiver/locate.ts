import { readdirSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, isAbsolute, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ServeError } from '../common/errors.ts'
import { closest } from '../common/names.ts'
import { redactUrl } from '../common/texts.ts'
import { downloadArchive, type DownloadLimits, notAllowed } from './download.ts'
import { ARCHIVE_SUFFIX } from './model-names.ts'

export interface LocateOptions {
  /** Absolute path of the model store. */
  readonly modelStore: string | undefined
  /** One of these must match the whole URL. */
  readonly allowedUrls: readonly RegExp[]
  readonly download?: DownloadLimits
  /** Whether the operator gave the location, so that every local path is allowed. Default false. */
  readonly trusted?: boolean
}

export interface LocatedModel {
  /** Absolute path of an archive file or of a folder. */
  readonly path: string
  /** Whether it was just downloaded into the store. */
  readonly downloaded: boolean
}

const MAX_URL = 8192
/** TorchServe's words. */
const NOT_FOUND = 'Model not found at: '

/**
 * Finds the model at the `url` of a register request: downloads http(s) URLs into the store, uses file://
 * URLs and paths in place, and looks up names in the store.
 *
 * Unlike TorchServe, refuses a local path outside the store unless `allowedUrls` matches it as a file:// URL
 * or `trusted` is set.
 * @throws ServeError with TorchServe's messages: MODEL_NOT_FOUND, DOWNLOAD_FAILED, INTERNAL
 */
export async function locateModel(url: string, options: LocateOptions): Promise<LocatedModel> {
  if (url === '') throw new ServeError('MODEL_NOT_FOUND', 'empty url')
  if (url.length > MAX_URL)
    throw new ServeError('INVALID_ARGUMENT', `Parameter url must have at most ${MAX_URL} characters.`)
  if (url.includes('..'))
    throw new ServeError('MODEL_NOT_FOUND', `Relative path is not allowed in url: ${redactUrl(url)}`)
  if (/^https?:/i.test(url)) return { path: await download(url, options), downloaded: true }
  if (/^file:/i.test(url)) return { path: await localFile(url, filePath(url), options), downloaded: false }
  if (isAbsolute(url) && (await exists(url)))
    return { path: await localFile(url, resolve(url), options), downloaded: false }
  return { path: await storedModel(url, options), downloaded: false }
}

async function download(url: string, options: LocateOptions): Promise<string> {
  const isAllowed = (target: string): boolean => matchesAny(target, options.allowedUrls)
  const store = configuredStore(options)
  return downloadArchive(url, store, { ...options.download, isAllowed })
}

async function localFile(url: string, path: string, options: LocateOptions): Promise<string> {
  const { modelStore, allowedUrls, trusted } = options
  const allowed =
    trusted === true || isInside(modelStore, path) || matchesAny(pathToFileURL(path).href, allowedUrls)
  if (!allowed) throw notAllowed(url)
  if (!(await exists(path))) throw notFound(url)
  return path
}

/** As in TorchServe, looks in the store for the last segment of a path. */
async function storedModel(url: string, options: LocateOptions): Promise<string> {
  const name = basename(url.replace(/\\/g, '/'))
  const path = join(configuredStore(options), name)
  if (name !== '' && name !== '.' && (await exists(path))) return path
  if (options.trusted === true && (await exists(resolve(url)))) return resolve(url)
  throw notFound(url)
}

function configuredStore(options: LocateOptions): string {
  if (options.modelStore !== undefined) return options.modelStore
  throw new ServeError('MODEL_NOT_FOUND', 'Model store has not been configured.')
}

/** @throws ServeError INVALID_ARGUMENT for a query or a fragment, which a path does not have */
function filePath(url: string): string {
  if (/[?#]/.test(url))
    throw new ServeError(
      'INVALID_ARGUMENT',
      'Parameter url: a file URL must have no query and no fragment; write ? as %3F and # as %23.',
    )
  try {
    return fileURLToPath(url)
  } catch {
    throw notFound(url)
  }
}

async function exists(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  return stats !== undefined && (stats.isFile() || stats.isDirectory())
}

function isInside(folder: string | undefined, path: string): boolean {
  if (folder === undefined) return false
  const way = relative(folder, path)
  return !way.startsWith('..') && !isAbsolute(way)
}

function matchesAny(url: string, patterns: readonly RegExp[]): boolean {
  return patterns.some(({ source, flags }) => new RegExp(`^(?:${source})$`, flags).test(url))
}

function notFound(url: string): ServeError {
  return new ServeError('MODEL_NOT_FOUND', `${NOT_FOUND}${redactUrl(url)}`)
}

/**
 * The end of the message about a model that is not there, for the operator: which store was searched, and
 * what it has of that name or of a similar one. Clients do not learn that. Empty for another error, and where
 * no store was searched.
 */
export function searchedStore(
  { code, message }: ServeError,
  url: string,
  modelStore: string | undefined,
): string {
  const isSearched = code === 'MODEL_NOT_FOUND' && message.startsWith(NOT_FOUND) && !/^file:/i.test(url)
  if (!isSearched || modelStore === undefined) return ''
  const near = nearestInStore(basename(url).replace(ARCHIVE_SUFFIX, ''), modelStore)
  const hint = near === undefined ? '' : `; did you mean ${near}?`
  return `, searched in the model store ${modelStore}${hint}`
}

function nearestInStore(name: string, modelStore: string): string | undefined {
  let files: string[] = []
  try {
    files = readdirSync(modelStore).filter((file) => !file.startsWith('.'))
  } catch {
    // A store that cannot be read has nothing near.
  }
  const byStem = new Map(files.map((file) => [file.replace(ARCHIVE_SUFFIX, ''), file]))
  return byStem.get(name) ?? byStem.get(closest(name, byStem.keys()) ?? '')
}
