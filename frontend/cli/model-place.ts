import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ServeError } from '../../common/errors.ts'
import { redactUrl } from '../../common/texts.ts'
import { isRepository } from '../../model-archiver/hub.ts'
import { ARCHIVE_SUFFIX, GGUF } from '../../model-archiver/model-names.ts'

/** What a user means by the model of `torchserve-ts serve`. */
export type ModelPlace =
  { readonly kind: 'path'; readonly path: string } | { readonly kind: 'url'; readonly url: string } | HubPlace

export interface HubPlace {
  readonly kind: 'hub'
  readonly repository: string
  readonly revision?: string
  readonly file?: string
  readonly tag?: string
}

const FORMS =
  'It must be a .gguf file, a folder or an archive (.mar, .tar.gz), the URL of a .gguf file or an archive, or a repository of Hugging Face: org/name or org/name:TAG'

/**
 * Tells a path, a URL and a repository of the hub apart. A path that exists comes first.
 * @param endpoint address of the hub
 * @throws ServeError MODEL_NOT_FOUND that says what it must be
 */
export function modelPlace(text: string, endpoint: string): ModelPlace {
  if (existsSync(text)) return localPlace(text)
  const hub = hubPlace(text, endpoint)
  if (hub !== undefined) return hub
  if (/^https?:\/\//i.test(text)) return urlPlace(text)
  if (/^file:/i.test(text) && existsSync(filePath(text))) return localPlace(filePath(text))
  throw new ServeError('MODEL_NOT_FOUND', `${redactUrl(text)} does not exist. ${FORMS}`)
}

function localPlace(text: string): ModelPlace {
  const path = resolve(text)
  if (statSync(path).isDirectory() || ARCHIVE_SUFFIX.test(path) || GGUF.test(path))
    return { kind: 'path', path }
  throw new ServeError('MODEL_NOT_FOUND', `${text} is not supported. ${FORMS}`)
}

function urlPlace(text: string): ModelPlace {
  const name = URL.canParse(text) ? new URL(text).pathname : ''
  if (GGUF.test(name) || ARCHIVE_SUFFIX.test(name)) return { kind: 'url', url: new URL(text).href }
  throw new ServeError('MODEL_NOT_FOUND', `${redactUrl(text)} is not supported. ${FORMS}`)
}

/** `org/name[:tag]`, also as `hf:`, `hf.co/` and the address of its page. */
function hubPlace(text: string, endpoint: string): HubPlace | undefined {
  const id = withoutHub(text, endpoint)
  if (id === undefined) return undefined
  const page = /^([^/:]+\/[^/:]+)\/(tree|blob|resolve)\/([^/?#]+)\/?([^?#]*)/.exec(id)
  if (page !== null && isRepository(page[1]!)) {
    const [, repository, kind, revision, path] = page
    const file = kind === 'tree' || path === '' ? {} : { file: decoded(path!) }
    return { kind: 'hub', repository: repository!, revision: decoded(revision!), ...file }
  }
  const [, repository = '', tag] = /^([^/:?#]+\/[^/:?#]+?)\/?(?::([\w.-]{1,100}))?(?:[?#].*)?$/.exec(id) ?? []
  if (!isRepository(repository)) return undefined
  return { kind: 'hub', repository, ...(tag !== undefined && { tag }) }
}

/** Undefined: the text names another host. */
function withoutHub(text: string, endpoint: string): string | undefined {
  const starts = [`${endpoint}/`, 'https://huggingface.co/', 'https://hf.co/', 'huggingface.co/', 'hf.co/']
  const start = [...starts, 'hf://', 'hf:'].find((each) => text.toLowerCase().startsWith(each.toLowerCase()))
  if (start !== undefined) return text.slice(start.length)
  return text.includes('://') ? undefined : text
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function filePath(url: string): string {
  try {
    return fileURLToPath(url)
  } catch {
    return ''
  }
}
