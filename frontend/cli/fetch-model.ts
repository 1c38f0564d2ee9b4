import { basename, dirname, join } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import { isLoopbackHost } from '../../common/addresses.ts'
import { redactUrl } from '../../common/texts.ts'
import { hubEndpoint, hubToken, listHubFiles, type HubFile } from '../../model-archiver/hub.ts'
import type { UserDownload } from '../../model-archiver/user-download.ts'
import { weightsStem } from '../../model-archiver/model-names.ts'
import { DownloadProgress, sizeText } from './download-progress.ts'
import {
  cachedFile,
  cachedPaths,
  checkHash,
  fetchToCache,
  hubFolder,
  isCurrent,
  urlFolder,
} from './model-cache.ts'
import type { HubPlace, ModelPlace } from './model-place.ts'
import type { Output } from './output.ts'
import { chooseWeights } from './weights-choice.ts'

export interface FetchOptions {
  /** Folder of downloaded models. */
  readonly cache: string
  readonly env: NodeJS.ProcessEnv
  /** SHA-256 that the file must have, in lowercase hex. */
  readonly sha256?: string
  readonly output: Output
  readonly signal: AbortSignal
}

/** A model on this machine. */
export interface FetchedModel {
  /** Absolute path of a .gguf file, an archive or a folder. */
  readonly path: string
  /** A name that says more than the file's. */
  readonly name?: string
}

/**
 * Brings a model to this machine, unless it is here already.
 * @throws ServeError MODEL_NOT_FOUND, DOWNLOAD_FAILED, UNTRUSTED_ARCHIVE
 */
export async function fetchModel(place: ModelPlace, options: FetchOptions): Promise<FetchedModel> {
  if (place.kind === 'hub') return fromHub(place, options)
  if (place.kind === 'url') return { path: await fromUrl(place.url, options) }
  if (options.sha256 !== undefined) await checkHash(place.path, options.sha256)
  return { path: place.path }
}

async function fromUrl(url: string, { cache, sha256, output, signal }: FetchOptions): Promise<string> {
  const name = fileName(url)
  const path = join(urlFolder(cache, url), name)
  const there = await cachedFile(path)
  const request: UserDownload = { signal, ...(sha256 !== undefined && { sha256 }) }
  if (there !== undefined) {
    if (sha256 === there.sha256) return path
    if (sha256 === undefined && (await orElse(isCurrent(there, request), true, path, { output, signal })))
      return path
  }
  const known = sha256 !== undefined
  const { protocol, hostname, host } = new URL(url)
  if (!known && protocol === 'http:' && !isLoopbackHost(hostname))
    output.err(`The connection to ${host} is not protected; --sha256 checks what arrives`)
  await download(url, path, name, request, output)
  return path
}

/** What is in the cache serves without a network, too. */
async function orElse<T>(
  asked: Promise<T>,
  otherwise: T,
  path: string,
  { output, signal }: Pick<FetchOptions, 'output' | 'signal'>,
): Promise<T> {
  try {
    return await asked
  } catch (error) {
    signal.throwIfAborted()
    output.err(`${(error as Error).message}. Using ${path}, downloaded before`)
    return otherwise
  }
}

async function fromHub(
  place: HubPlace,
  { cache, env, sha256, output, signal }: FetchOptions,
): Promise<FetchedModel> {
  const { repository } = place
  const folder = hubFolder(cache, repository)
  const token = await hubToken(env)
  const listing = await listed(place, env, token, signal, folder, output)
  const parts = chooseWeights(
    listing.map(({ path }) => path),
    place,
  )
  if (sha256 !== undefined && parts.length > 1)
    throw new ServeError(
      'CONFIG',
      '--sha256 is not supported for a model in parts; the hub gives the hash of each',
    )
  for (const part of parts) {
    const file = listing.find(({ path }) => path === part)!
    const path = join(folder, part)
    const wanted = sha256 ?? file.sha256
    if (sha256 !== undefined && file.sha256 !== undefined && sha256 !== file.sha256)
      throw new ServeError(
        'UNTRUSTED_ARCHIVE',
        `The SHA-256 of ${part} must be ${sha256}, but the hub gives ${file.sha256}`,
      )
    if (file.isLocal === true) {
      if (sha256 !== undefined) await checkHash(path, sha256)
      continue
    }
    const there = await cachedFile(path)
    if (wanted === undefined ? there?.url === file.url : there?.sha256 === wanted) continue
    const request: UserDownload = {
      signal,
      ...(token !== undefined && { bearer: token }),
      ...(wanted !== undefined && { sha256: wanted }),
    }
    await download(file.url, path, part, request, output)
  }
  const path = join(folder, parts[0]!)
  const isGeneric = /^(model|ggml-model|unsloth)?$/i.test(weightsStem(basename(path)))
  return { path, ...(isGeneric && { name: repository.slice(repository.indexOf('/') + 1) }) }
}

/** What a user without access to the hub can do. */
function withWayOut(error: unknown): unknown {
  if (!(error instanceof ServeError) || error.cause === undefined) return error
  const way = 'Without access to the hub, serve a .gguf file of this machine, or set HF_ENDPOINT to a mirror'
  return new ServeError(error.code, `${error.message}. ${way}`, { cause: error.cause })
}

type Listed = HubFile & { readonly isLocal?: boolean }

/** The hub's files; when it cannot be asked, what was downloaded before. */
async function listed(
  place: HubPlace,
  env: NodeJS.ProcessEnv,
  token: string | undefined,
  signal: AbortSignal,
  folder: string,
  output: Output,
): Promise<Listed[]> {
  try {
    return await listHubFiles(place, hubEndpoint(env), token, signal)
  } catch (error) {
    signal.throwIfAborted()
    const local = await cachedPaths(folder)
    if (local.length === 0) throw withWayOut(error)
    output.err(`${(error as Error).message}. Using what was downloaded before to ${folder}`)
    return local.map((path) => ({ path, size: undefined, sha256: undefined, url: '', isLocal: true }))
  }
}

async function download(
  url: string,
  path: string,
  name: string,
  request: UserDownload,
  output: Output,
): Promise<void> {
  const progress = new DownloadProgress(name, output)
  const wanted = request.sha256
  try {
    const { bytes, sha256 } = await fetchToCache(url, path, { ...request, onProgress: progress.show })
    progress.end()
    const hash = wanted === undefined ? `its SHA-256 is ${sha256}` : 'its SHA-256 is right'
    output.err(`Downloaded ${sizeText(bytes)} to ${dirname(path)}; ${hash}`)
  } catch (error) {
    progress.end()
    throw error
  }
}

function fileName(url: string): string {
  const path = new URL(url).pathname
  const name = decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))
  if (/^[\w@+][\w .@+()=-]{0,199}$/.test(name)) return name
  throw new ServeError(
    'DOWNLOAD_FAILED',
    `The last part of ${redactUrl(url)} must be a file name of letters, digits and - _ . @ + = ( ) or blanks`,
  )
}
