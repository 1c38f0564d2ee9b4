import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, sep } from 'node:path'
import type Koa from 'koa'
import { absent, ServeError } from '../../../common/errors.ts'
import { baseHeaders } from '../../edge/http/safe-response.ts'
import { consoleDir } from '../../package-info.ts'
import { callOf, methodNotAllowed } from './rest-koa.ts'

/** A file of the page, in memory. */
interface ConsoleFile {
  readonly body: Buffer
  readonly etag: string
  /** Names and values, alternating. */
  readonly headers: readonly string[]
}

const TYPES: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png'],
  ['.txt', 'text/plain; charset=utf-8'],
])

/** The page runs its own script, talks to this server, and nothing else. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

const NOT_BUILT =
  'This installation has no console: it was built without its page. Run npm run build, or set enable_console=false.'

/**
 * The page of the console, below /console: files without data, which need no token. The data that it shows
 * come from the management API, with a token.
 */
export function consolePages(folder = consoleDir): Koa.Middleware {
  let files: ReadonlyMap<string, ConsoleFile> | undefined
  return (ctx, next) => {
    const call = callOf(ctx)
    const [first, ...rest] = call.target.segments
    if (first !== 'console') return next()
    call.admit(undefined)
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed()
    files ??= filesOf(folder)
    const name = rest.join('/')
    const file = files.get(name === '' ? 'index.html' : name)
    if (file === undefined) throw notThere(name, files)
    ctx.respond = false
    const { reply, requestId } = call
    const isKnown = names(ctx.get('if-none-match'), file.etag)
    const status = isKnown ? 304 : 200
    const head = [...baseHeaders(requestId, reply.keepsAlive(status)), ...file.headers]
    // Node sends no body to HEAD, and its length all the same.
    reply.answer(status, head, isKnown ? Buffer.alloc(0) : file.body)
    return undefined
  }
}

/**
 * Whether the header If-None-Match has it; proxies weaken tags.
 * https://www.rfc-editor.org/rfc/rfc9110#name-if-none-match
 */
function names(header: string, etag: string): boolean {
  return header.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}

function notThere(name: string, files: ReadonlyMap<string, ConsoleFile>): ServeError {
  const text = files.size === 0 ? NOT_BUILT : `The console has no file ${name.slice(0, 200)}`
  return new ServeError('ROUTE_NOT_FOUND', text)
}

/** Read once; empty: the build has no page. Only these names exist, so no path leads out of the folder. */
function filesOf(folder: string): ReadonlyMap<string, ConsoleFile> {
  const files = new Map<string, ConsoleFile>()
  for (const path of filePaths(folder)) {
    const type = TYPES.get(extname(path))
    if (type === undefined) continue
    const body = readFileSync(join(folder, path))
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
    const headers = ['content-type', type, 'etag', etag, 'content-security-policy', POLICY]
    files.set(path.split(sep).join('/'), { body, etag, headers })
  }
  return files
}

function filePaths(folder: string): string[] {
  try {
    // Node 20.11 has no `parentPath` for entries with types.
    return (readdirSync(folder, { recursive: true }) as string[]).filter((path) =>
      statSync(join(folder, path)).isFile(),
    )
  } catch (error) {
    return absent(error) ?? []
  }
}
