import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { ServeError } from '../common/errors.ts'
import { isObject, parseJson } from '../common/json.ts'
import { userGet } from './user-download.ts'

/** Where a model is on the hub of Hugging Face. */
export interface HubModel {
  /** `org/name` */
  readonly repository: string
  /** Branch, tag or commit. Default `main`. */
  readonly revision?: string
}

/** One file of a repository. */
export interface HubFile {
  /** Path in the repository. */
  readonly path: string
  /** Bytes; undefined: the hub does not say it. */
  readonly size: number | undefined
  /** SHA-256 in lowercase hex; undefined for a small file, which the hub does not hash so. */
  readonly sha256: string | undefined
  /** URL of this file at the commit that was listed. */
  readonly url: string
}

type Environment = Readonly<Record<string, string | undefined>>

const ENDPOINT = 'https://huggingface.co'
/** A listing of ten thousand files. */
const MAX_LISTING_BYTES = 16 * 1024 ** 2
const MAX_LISTING_MS = 60_000
const REPOSITORY = /^[A-Za-z0-9][\w.-]{0,95}\/[A-Za-z0-9][\w.-]{0,95}$/

/** Whether a text may be the id of a repository: `org/name`. */
export function isRepository(text: string): boolean {
  return REPOSITORY.test(text) && !text.includes('..') && !text.includes('--')
}

/** The hub's address: HF_ENDPOINT, as in the hub's own client. @throws ServeError CONFIG */
export function hubEndpoint(env: Environment): string {
  const text = (env['HF_ENDPOINT'] ?? '').trim().replace(/\/+$/, '')
  if (text === '') return ENDPOINT
  if (URL.canParse(text) && /^https?:/i.test(text)) return text
  throw new ServeError('CONFIG', 'HF_ENDPOINT must be an http or https URL')
}

/**
 * The user's token, found as the hub's own client does: HF_TOKEN, then the file of HF_TOKEN_PATH, which
 * `hf auth login` writes (default: `token` in HF_HOME, or in huggingface in the cache folder).
 */
export async function hubToken(env: Environment): Promise<string | undefined> {
  if (/^(1|on|yes|true)$/i.test(env['HF_HUB_DISABLE_IMPLICIT_TOKEN'] ?? '')) return undefined
  const given = [env['HF_TOKEN'], env['HUGGING_FACE_HUB_TOKEN']].find((text) => isSet(text))
  const text = given ?? (await readFile(tokenPath(env), 'utf8').catch(() => ''))
  const token = text.trim()
  // A header cannot hold anything else.
  return /^[\x21-\x7e]{1,4096}$/.test(token) ? token : undefined
}

function tokenPath(env: Environment): string {
  const named = env['HF_TOKEN_PATH']
  if (isSet(named)) return named
  const home = env['HF_HOME']
  if (isSet(home)) return join(home, 'token')
  const cache = env['XDG_CACHE_HOME'] ?? ''
  return join(isAbsolute(cache) ? cache : join(homedir(), '.cache'), 'huggingface', 'token')
}

function isSet(text: string | undefined): text is string {
  return text !== undefined && text.trim() !== ''
}

/**
 * Lists the files of a repository at one commit, with sizes and hashes (the hub's API, "Get model info").
 * @throws ServeError DOWNLOAD_FAILED
 */
export async function listHubFiles(
  { repository, revision = 'main' }: HubModel,
  endpoint: string,
  token: string | undefined,
  signal: AbortSignal,
): Promise<HubFile[]> {
  const url = `${endpoint}/api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`
  const json = parseJson(await textOf(url, token, signal))
  const siblings = isObject(json) ? json['siblings'] : undefined
  if (!isObject(json) || !Array.isArray(siblings))
    throw new ServeError('DOWNLOAD_FAILED', `${url} did not answer as the hub of Hugging Face does`)
  const { sha } = json
  const commit = typeof sha === 'string' && /^[0-9a-f]{40}$/.test(sha) ? sha : revision
  return siblings.flatMap((entry: unknown) => {
    const file = isObject(entry) ? fileOf(entry) : undefined
    if (file === undefined) return []
    const path = file.path.split('/').map(encodeURIComponent).join('/')
    return [{ ...file, url: `${endpoint}/${repository}/resolve/${encodeURIComponent(commit)}/${path}` }]
  })
}

/** Undefined: its path cannot be one in a folder of ours. */
function fileOf(entry: Record<string, unknown>): Omit<HubFile, 'url'> | undefined {
  const { rfilename: path, size, lfs } = entry
  if (typeof path !== 'string' || !isPlainPath(path)) return undefined
  const sha256 = isObject(lfs) ? (lfs['sha256'] ?? lfs['oid']) : undefined
  return {
    path,
    size: typeof size === 'number' && size >= 0 ? size : undefined,
    sha256: typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256) ? sha256 : undefined,
  }
}

function isPlainPath(path: string): boolean {
  const parts = path.split('/')
  return path.length <= 512 && parts.every((part) => /^[\w@+][\w .@+()=-]{0,199}$/.test(part))
}

async function textOf(url: string, bearer: string | undefined, signal: AbortSignal): Promise<string> {
  const { response } = await userGet(url, { bearer, signal })
  const chunks: Buffer[] = []
  let bytes = 0
  // A byte now and then keeps a connection from being idle.
  const timer = setTimeout(() => {
    response.destroy(new Error(`it did not arrive within ${MAX_LISTING_MS / 1000} s`))
  }, MAX_LISTING_MS)
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > MAX_LISTING_BYTES) throw new Error(`it has more than ${MAX_LISTING_BYTES} bytes`)
      chunks.push(chunk)
    }
  } catch (error) {
    throw new ServeError('DOWNLOAD_FAILED', `${url} could not be read: ${(error as Error).message}`)
  } finally {
    clearTimeout(timer)
  }
  return Buffer.concat(chunks).toString('utf8')
}
