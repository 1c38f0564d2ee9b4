import type { Random } from '../support/random.ts'
import { rawRequest } from '../support/raw-http.ts'
import type { Server } from '../support/server-process.ts'
import { Beside, Counts, repeatedly } from './beside.ts'
import type { Caller } from './callers.ts'
import type { Excuses } from './excuses.ts'
import { EDITIONS, editionUrl, GUEST, SCALED, VERSIONS, WORKERS } from './models.ts'

const BETWEEN_MS = { least: 200, most: 3_000 }
const NOW = 'initial_workers=1&synchronous=true'

/**
 * Manages the models while clients use them. Taking a model away is an excuse for refusing its requests at
 * that time. Scaling, a new default version, and taking away a version that is not the default are none.
 */
export class Operator {
  readonly counts = new Counts<'scale' | 'unregister' | 'default'>()
  readonly #server: Server
  readonly #random: Random
  readonly #excuses: Excuses
  readonly #caller: Caller
  readonly #beside = new Beside()
  #default: string = VERSIONS[0]
  #isSwitching = false

  constructor(server: Server, random: Random, excuses: Excuses, caller: Caller) {
    this.#server = server
    this.#random = random
    this.#excuses = excuses
    this.#caller = caller
  }

  /** What the server did not do as asked. */
  get errors(): readonly string[] {
    return this.#beside.errors
  }

  /** Registers what the server did not load at its start. */
  async prepare(): Promise<void> {
    await this.#registerEdition(VERSIONS[1])
  }

  /** Manages at random until the signal aborts; then everything is as before. */
  async run(signal: AbortSignal): Promise<void> {
    const acts = [() => this.#resize(), () => this.#replaceGuest(), () => this.#switchDefault()]
    await repeatedly(this.#random, BETWEEN_MS, signal, () => this.#beside.start(this.#random.pick(acts)()))
    await this.#beside.ended()
    for (const model of SCALED) this.#beside.start(this.#scale(model, WORKERS))
    if (this.#default !== VERSIONS[0]) this.#beside.start(this.#switchDefault())
    await this.#beside.ended()
  }

  async #resize(): Promise<void> {
    this.counts.add('scale')
    await this.#scale(this.#random.pick(SCALED), this.#random.integer(1, WORKERS + 1))
  }

  async #scale(model: string, workers: number): Promise<void> {
    await this.#ask(202, 'PUT', `/models/${model}?min_worker=${workers}&max_worker=${workers}`)
  }

  /** Takes the guest away while its clients stream, and brings it back. */
  async #replaceGuest(): Promise<void> {
    if (this.#excuses.isOpen(GUEST)) return
    this.counts.add('unregister')
    const excuse = this.#excuses.open(GUEST)
    await this.#ask(200, 'DELETE', `/models/${GUEST}`)
    await this.#ask(200, 'POST', `/models?url=${GUEST}&model_name=${GUEST}&${NOW}`)
    excuse.to = performance.now()
  }

  /** Makes the other version the default; the one before is replaced while its streams go on. */
  async #switchDefault(): Promise<void> {
    if (this.#isSwitching) return
    this.#isSwitching = true
    this.counts.add('default')
    const before = this.#default
    this.#default = VERSIONS.find((version) => version !== before)!
    await this.#ask(200, 'PUT', `/models/${EDITIONS}/${this.#default}/set-default`)
    const [described] = await this.#server.describe(EDITIONS)
    if (described!.modelVersion !== this.#default) throw new Error(`the default is not ${this.#default}`)
    await this.#ask(200, 'DELETE', `/models/${EDITIONS}/${before}`)
    await this.#registerEdition(before)
    this.#isSwitching = false
  }

  #registerEdition(version: string): Promise<void> {
    return this.#ask(200, 'POST', `/models?url=${editionUrl(version)}&model_name=${EDITIONS}&${NOW}`)
  }

  async #ask(expected: number, method: string, path: string): Promise<void> {
    const { headers } = this.#caller
    const { status, body } = await rawRequest(this.#server.ports.management, path, { method, headers })
    if (status !== expected) throw new Error(`${method} ${path}: ${status} ${body}`)
  }
}
