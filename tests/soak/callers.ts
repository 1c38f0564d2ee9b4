import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runKeys } from '../../frontend/cli/keys.ts'
import type { Random } from '../support/random.ts'
import { rawRequest } from '../support/raw-http.ts'
import type { Server } from '../support/server-process.ts'
import { repeatedly } from './beside.ts'
import { isSteady, STEADY_GLOB } from './models.ts'

/** Who asks: what a request shows. */
export interface Caller {
  /** Of the entry in the keys file, or in words. */
  readonly name: string
  readonly kind: 'scoped key' | 'key' | 'revoked key' | 'wrong key' | 'no key'
  readonly headers: Readonly<Record<string, string>>
}

const BETWEEN_MS = { least: 2_000, most: 6_000 }
/** Revoked keys that are tried again and again. */
const KEPT = 20

/** An API key that is in use until the next one takes its place. */
interface Current extends Caller {
  /** Requests that show it. */
  readonly open: Set<Promise<unknown>>
}

/** The keys file of the server, as `torchserve-ts keys` changes it. */
export class KeysFile {
  readonly path: string

  constructor(folder: string) {
    this.path = join(folder, 'keys.json')
  }

  async add(name: string, scope: string, models: readonly string[] = []): Promise<Caller> {
    const only = models.length === 0 ? [] : ['--models', ...models]
    const [key] = await this.#run('add', name, '--scope', scope, ...only)
    return bearing(models.length === 0 ? 'key' : 'scoped key', name, key!)
  }

  async revoke({ name }: Caller): Promise<void> {
    await this.#run('revoke', name)
  }

  async #run(...argv: string[]): Promise<string[]> {
    const out: string[] = []
    const err: string[] = []
    const output = { out: (line: string) => void out.push(line), err: (line: string) => void err.push(line) }
    if ((await runKeys([...argv, '--file', this.path], output)) !== 0) throw new Error(err.join('\n'))
    return out
  }
}

/** Callers whose keys do not change. */
export interface Lasting {
  /** An API key for the models of {@link STEADY_GLOB}. */
  readonly scoped: Caller
  /** An API key for managing all models. */
  readonly operator: Caller
}

export async function lastingCallers(file: KeysFile): Promise<Lasting> {
  return {
    scoped: await file.add('scoped', 'inference', [STEADY_GLOB]),
    operator: await file.add('operator', 'management'),
  }
}

/** TorchServe's own key of that kind. */
export function torchserveCaller({ folder }: Server, kind: 'inference' | 'management'): Caller {
  const keys = JSON.parse(readFileSync(join(folder, 'key_file.json'), 'utf8')) as Record<
    typeof kind,
    { key: string }
  >
  return bearing('key', `torchserve ${kind}`, keys[kind].key)
}

/**
 * Those who ask for predictions: with TorchServe's key, with an API key that is replaced again and again, and
 * with one for some models. Requests of any of them are never refused.
 */
export class Callers {
  rotations = 0
  /** Milliseconds from the command's end until the server knew. */
  slowestMs = 0
  readonly errors: string[] = []
  readonly #server: Server
  readonly #file: KeysFile
  readonly #torchserve: Caller
  readonly #scoped: Caller
  #current: Current
  #revoked: Caller[] = []

  private constructor(server: Server, file: KeysFile, { scoped }: Lasting, first: Caller) {
    this.#server = server
    this.#file = file
    this.#torchserve = torchserveCaller(server, 'inference')
    this.#scoped = scoped
    this.#current = { ...first, open: new Set() }
  }

  static async create(server: Server, file: KeysFile, lasting: Lasting): Promise<Callers> {
    const callers = new Callers(server, file, lasting, await file.add('rotated-0', 'inference'))
    await callers.#until(callers.#current, true)
    return callers
  }

  /** Makes a request for that model as one of those who may. Its key is not revoked before it has ended. */
  async ask<T>(random: Random, model: string, request: (caller: Caller) => Promise<T>): Promise<T> {
    const current = this.#current
    const others = isSteady(model) ? [this.#torchserve, this.#scoped] : [this.#torchserve]
    const caller = random.pick([current, ...others])
    const asked = request(caller)
    if (caller !== current) return asked
    current.open.add(asked)
    try {
      return await asked
    } finally {
      current.open.delete(asked)
    }
  }

  /** One whom no API may let in. */
  stranger(random: Random): Caller {
    return random.pick([...this.#revoked, NOBODY, bearing('wrong key', 'wrong', newGuess())])
  }

  /** One who may not ask for models that are not steady. */
  get scoped(): Caller {
    return this.#scoped
  }

  /** Replaces the API key until the signal aborts: the new one works, then the old one stops. */
  async run(random: Random, signal: AbortSignal): Promise<void> {
    await repeatedly(random, BETWEEN_MS, signal, () =>
      this.#rotate().catch((error: unknown) => void this.errors.push(String(error))),
    )
  }

  async #rotate(): Promise<void> {
    this.rotations += 1
    const next = await this.#file.add(`rotated-${this.rotations}`, 'inference')
    await this.#until(next, true)
    const old = this.#current
    this.#current = { ...next, open: new Set() }
    await Promise.allSettled(old.open)
    await this.#file.revoke(old)
    await this.#until(old, false)
    this.#revoked = [...this.#revoked, { ...old, kind: 'revoked key' } as const].slice(-KEPT)
  }

  async #until({ name, headers }: Caller, isIn: boolean): Promise<void> {
    const began = performance.now()
    const ping = (): Promise<number> =>
      rawRequest(this.#server.ports.inference, '/ping', { method: 'GET', headers }).then(
        ({ status }) => status,
      )
    const status = await this.#server.until(ping, (each) => (each === 200) === isIn)
    if (!isIn && status !== 400) throw new Error(`${name}: ${status}`)
    this.slowestMs = Math.max(this.slowestMs, performance.now() - began)
  }
}

const NOBODY: Caller = { name: 'nobody', kind: 'no key', headers: {} }
let guesses = 0

/** A key that nobody has. */
function newGuess(): string {
  guesses += 1
  return `tsk_guess${guesses}`.padEnd(47, 'x')
}

function bearing(kind: Caller['kind'], name: string, key: string): Caller {
  return { name, kind, headers: { authorization: `Bearer ${key}` } }
}
