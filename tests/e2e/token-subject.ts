import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Client, credentials, Metadata, status, type StatusObject } from '@grpc/grpc-js'
import type { ListenerKind } from '../../frontend/edge/http/page-check.ts'
import { reflectedRpcs } from '../support/reflection.ts'
import type { Server } from '../support/server.ts'
import { guessedPaths, type Need, type RestRoute, restRoutes, tokenRoutes } from './token-routes.ts'

/** What a client may send; `right` and `wrong kind` depend on what the route needs. */
const CREDENTIALS = ['none', 'wrong', 'malformed', 'wrong kind', 'right'] as const

type KeyFile = Record<'inference' | 'management', { key: string; 'expiration time': string }> & {
  API: { key: string }
}
type Mode = 'on' | 'expired' | 'off'
type Verdict = 'refused' | 'absent' | 'let in'
type Target = { host: string; port: number } | { socketPath: string }

/** REST listeners by the name that the server prints. */
const REST_KINDS: Readonly<Record<string, ListenerKind>> = {
  'Inference REST API': 'inference',
  'Management REST API': 'management',
  'Inference and Management REST API': 'shared',
  'Metrics REST API': 'metrics',
}

interface Listener {
  name: string
  target: Target
  /** Undefined: gRPC. */
  rest: ListenerKind | undefined
}

interface Cell {
  path: string
  method?: string
  credential: string
  header?: string
  needs: Need
}

/** A server, its keys at its start, and what must happen on it. */
export class Subject {
  readonly server: Server
  readonly keys: KeyFile
  readonly #mode: Mode

  constructor(server: Server, mode: Mode, keys?: KeyFile) {
    this.server = server
    this.#mode = mode
    this.keys = keys ?? (JSON.parse(readFileSync(join(server.folder, 'key_file.json'), 'utf8')) as KeyFile)
  }

  /** Whatever the server says that it listens on. @throws Error for one that the matrix does not know */
  get listeners(): Listener[] {
    return this.server.output.flatMap((line) => {
      const [, name, address] = /^(.+) listens on (\S+)$/.exec(line) ?? []
      if (name === undefined) return []
      const rest = REST_KINDS[name]
      if (rest === undefined && !name.includes('gRPC')) throw new Error(`The matrix does not know: ${line}`)
      return [{ name, target: targetOf(address!), rest }]
    })
  }

  /** Each cell of the matrix that is not as it should be. The routes that change keys are left out. */
  async mistakes({ target, rest }: Listener): Promise<string[]> {
    if (rest !== undefined) return this.#restMistakes(target, restRoutes(rest))
    const { port } = target as { port: number }
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
    const rpcs = [...(await reflectedRpcs(port)).entries()].flatMap(([service, paths]) =>
      paths.map((path) => ({ path, needs: rpcNeeds(service, path) })),
    )
    const cells = rpcs.flatMap((rpc) => this.#cells(rpc.needs).map((cell) => ({ ...rpc, ...cell })))
    const mistakes = await this.#mistakesOf(cells, ({ path, header }) => askGrpc(client, path, header))
    client.close()
    return mistakes
  }

  async tokenRouteMistakes({ target, rest }: Listener): Promise<string[]> {
    return rest === undefined ? [] : this.#restMistakes(target, tokenRoutes(rest))
  }

  /** Guessed paths that a client without a token gets more of than a refusal. */
  async letInWithoutToken({ target, rest }: Listener): Promise<string[]> {
    if (rest === undefined) return []
    const letIn: string[] = []
    const asked = guessedPaths(rest).flatMap((path) => ['GET', 'POST'].map((method) => ({ path, method })))
    const harmless: Verdict = rest === 'metrics' ? 'absent' : 'refused'
    await eachOf(asked, async ({ path, method }) => {
      const verdict = await this.#askRest(target, method, path)
      if (verdict !== harmless) letIn.push(`${method} ${path}: ${verdict}`)
    })
    return letIn
  }

  #restMistakes(target: Target, routes: RestRoute[]): Promise<string[]> {
    const cells = routes.flatMap((route) => this.#cells(route.needs).map((cell) => ({ ...route, ...cell })))
    return this.#mistakesOf(cells, ({ method, path, header }) => this.#askRest(target, method, path, header))
  }

  async #mistakesOf<C extends Cell>(cells: C[], ask: (cell: C) => Promise<Verdict>): Promise<string[]> {
    const mistakes: string[] = []
    await eachOf(cells, async (cell) => {
      const verdict = await ask(cell)
      if (verdict === this.#expected(cell)) return
      mistakes.push(`${cell.method ?? 'rpc'} ${cell.path}, token ${cell.credential}: ${verdict}`)
    })
    return mistakes.sort()
  }

  #expected({ needs, credential, path }: Cell): Verdict {
    // The API key does not expire.
    const isExpired = this.#mode === 'expired' && needs !== 'API'
    const isChecked = needs !== 'nothing' && this.#mode !== 'off'
    if (isChecked && (credential !== 'right' || isExpired)) return 'refused'
    // A path that looks like the token route but is none; and there is no token route without tokens.
    return path === '/tokens' || (needs === 'API' && this.#mode === 'off') ? 'absent' : 'let in'
  }

  #cells(needs: Need): { credential: string; header?: string }[] {
    const { inference, management, API } = this.keys
    const keys = { inference: inference.key, management: management.key, API: API.key }
    const own = needs === 'nothing' ? 'inference' : needs
    return CREDENTIALS.flatMap((credential): { credential: string; header?: string }[] => {
      switch (credential) {
        case 'none':
          return [{ credential }]
        case 'wrong':
          return [{ credential, header: 'Bearer AAAAAAAA' }]
        case 'malformed':
          return [
            { credential, header: keys[own] },
            { credential: 'too long', header: `Bearer ${keys[own]}x` },
          ]
        case 'right':
          return [{ credential, header: `Bearer ${keys[own]}` }]
        case 'wrong kind':
          return Object.entries(keys)
            .filter(([kind]) => kind !== own)
            .map(([kind, key]) => ({ credential: `of kind ${kind}`, header: `Bearer ${key}` }))
      }
    })
  }

  /**
   * 400 InvalidKeyException, or 401 as the dialects beside TorchServe's say it, and nothing else, is a
   * refusal.
   */
  async #askRest(target: Target, method: string, path: string, header?: string): Promise<Verdict> {
    const { status, text } = await answerTo(target, method, path, header)
    // The answer to HEAD has no body.
    const isToken = method === 'HEAD' || text.includes('"type": "InvalidKeyException"')
    const isRefusal = (status === 400 && isToken) || status === 401
    // A route that looked for an open request, and found none, has let its client in.
    const isAbsent = text.includes('"ResourceNotFoundException"') && !text.includes('No open request')
    return isRefusal ? 'refused' : isAbsent ? 'absent' : 'let in'
  }
}

/**
 * One request on a connection of its own: refusals end theirs anyway, and node:http takes twice the time for
 * it, of which the matrix with its tens of thousands has little.
 */
function answerTo(
  target: Target,
  method: string,
  path: string,
  authorization?: string,
): Promise<{ status: number; text: string }> {
  const lines = [`${method} ${path} HTTP/1.1`, 'host: 127.0.0.1', 'connection: close']
  if (['POST', 'PUT', 'PATCH'].includes(method)) lines.push('content-length: 0')
  if (authorization !== undefined) lines.push(`authorization: ${authorization}`)
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = 'port' in target ? connect(target.port, target.host) : connect(target.socketPath)
    const done = (): void => {
      const status = /^HTTP\/1\.1 (\d+) /.exec(text)?.[1]
      if (status === undefined) reject(new Error(`No answer to ${method} ${path}: ${text}`))
      else resolve({ status: Number(status), text })
    }
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (!EVENTS.test(text)) return
      done()
      socket.destroy()
    })
    socket.on('error', reject).on('end', done)
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  })
}

/** The head of a stream that goes on until its reader leaves. */
const EVENTS = /^content-type: text\/event-stream\b.*\r\n\r\n/ims

/** What an rpc needs whoever added it; only what is listed here may differ. */
function rpcNeeds(service: string, path: string): Need {
  if (['grpc.health.', 'grpc.reflection.'].some((open) => service.startsWith(open))) return 'nothing'
  if (service.endsWith('.ManagementAPIsService')) return 'management'
  return /\/RepositoryModel(Load|Unload)$/.test(path) ? 'management' : 'inference'
}

/** `http://127.0.0.1:80`, `127.0.0.1:80` or `unix:/path`. */
function targetOf(address: string): Target {
  const socket = /^unix:(?:\/\/)?(.*)$/.exec(address)
  if (socket !== null) return { socketPath: socket[1]! }
  return { host: '127.0.0.1', port: Number(address.slice(address.lastIndexOf(':') + 1)) }
}

/** Some at a time. */
async function eachOf<T>(values: T[], work: (value: T) => Promise<void>): Promise<void> {
  if (values.length === 0) throw new Error('There is nothing to ask')
  let next = 0
  const one = async (): Promise<void> => {
    while (next < values.length) await work(values[next++]!)
  }
  await Promise.all(Array.from({ length: 16 }, one))
}

/** Any rpc can be called as one that streams both ways: on the wire it looks the same. */
function askGrpc(client: Client, path: string, header?: string): Promise<Verdict> {
  const metadata = new Metadata()
  if (header !== undefined) metadata.set('authorization', header)
  const asItIs = (bytes: Buffer): Buffer => bytes
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest(path, asItIs, asItIs, metadata, {
      deadline: Date.now() + 20_000,
    })
    call.on('error', () => undefined)
    call.on('data', () => {
      resolve('let in')
      call.cancel()
    })
    call.on('status', ({ code, details }: StatusObject) => {
      const isToken = details.startsWith('Token Authorization failed.')
      // TorchServe's services say it with the first, the Open Inference Protocol with the second.
      const isRefusal = isToken && (code === status.PERMISSION_DENIED || code === status.UNAUTHENTICATED)
      resolve(isRefusal ? 'refused' : code === status.UNIMPLEMENTED ? 'absent' : 'let in')
    })
    call.write(Buffer.alloc(0))
    call.end()
  })
}
