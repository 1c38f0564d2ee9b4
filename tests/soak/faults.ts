import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../support/random.ts'
import type { Server } from '../support/server-process.ts'
import { Beside, Counts, repeatedly } from './beside.ts'
import type { Excuse, Excuses } from './excuses.ts'
import { isVictim, LOADED, VICTIMS } from './models.ts'

/** Milliseconds between two deaths on one model: a worker that was ready for so long starts again at once. */
const RECOVERED_MS = 11_000
/** Milliseconds in which a model has its workers back. */
const BACK_MS = 60_000
const PAUSE_MS = { least: 100, most: 2_000 }
const BETWEEN_MS = { least: 200, most: 3_000 }

/**
 * Does harm to workers at random. Killing and ending a process is an excuse for requests of that model at
 * that time; stopping a process for a while is none for anybody.
 */
export class Faults {
  readonly counts = new Counts<'kill' | 'exit' | 'pause'>()
  readonly #server: Server
  readonly #random: Random
  readonly #excuses: Excuses
  readonly #beside = new Beside()
  readonly #readySince = new Map<string, number>()
  readonly #paused = new Set<number>()

  constructor(server: Server, random: Random, excuses: Excuses) {
    this.#server = server
    this.#random = random
    this.#excuses = excuses
  }

  /** What went wrong with the faults themselves. */
  get errors(): readonly string[] {
    return this.#beside.errors
  }

  /** Injects faults until the signal aborts; then everything is as before. */
  async run(signal: AbortSignal): Promise<void> {
    await repeatedly(this.#random, BETWEEN_MS, signal, () => {
      const isKill = this.#random.chance(0.5)
      this.#beside.start(
        isKill ? this.#kill(this.#random.pick(VICTIMS)) : this.#pause(this.#random.pick(LOADED)),
      )
    })
    await this.#beside.ended()
  }

  /**
   * Leave to let a handler of that model end its process. The excuse begins with it; the client calls what it
   * gets when its request has ended. Undefined: not now.
   */
  leaveToExit(model: string): (() => void) | undefined {
    if (!isVictim(model) || !this.#isRecovered(model)) return undefined
    this.counts.add('exit')
    const excuse = this.#open(model)
    let ended = (): void => undefined
    const request = new Promise<void>((resolve) => (ended = resolve))
    this.#beside.start(request.then(() => this.#untilReady(model, excuse, [])))
    return ended
  }

  async #kill(model: string): Promise<void> {
    if (!this.#isRecovered(model)) return
    const excuse = this.#open(model)
    const pids = await this.#pids(model)
    const killed = pids.slice(0, this.#random.integer(1, Math.max(1, pids.length)))
    for (const pid of killed) signalTo(pid, 'SIGKILL')
    this.counts.add('kill', killed.length)
    await this.#untilReady(model, excuse, killed)
  }

  async #pause(model: string): Promise<void> {
    const pids = await this.#pids(model)
    const pid = pids.length === 0 ? undefined : this.#random.pick(pids)
    if (pid === undefined || this.#paused.has(pid)) return
    this.#paused.add(pid)
    this.counts.add('pause')
    signalTo(pid, 'SIGSTOP')
    await sleep(this.#random.integer(PAUSE_MS.least, PAUSE_MS.most))
    signalTo(pid, 'SIGCONT')
    this.#paused.delete(pid)
  }

  async #pids(model: string): Promise<number[]> {
    const versions = await this.#server.describe(model)
    return versions[0]!.workers.filter(({ status }) => status === 'READY').map(({ pid }) => pid)
  }

  #isRecovered(model: string): boolean {
    return performance.now() - (this.#readySince.get(model) ?? -Infinity) > RECOVERED_MS
  }

  #open(model: string): Excuse {
    this.#readySince.set(model, Infinity)
    return this.#excuses.open(model)
  }

  /** Ends the excuse when all workers are ready and none of them is one that was killed. */
  async #untilReady(model: string, excuse: Excuse, killed: number[]): Promise<void> {
    try {
      await this.#server.until(
        () => this.#server.describe(model),
        ([version]) =>
          version!.workers.every(({ status, pid }) => status === 'READY' && !killed.includes(pid)),
        BACK_MS,
      )
    } catch (cause) {
      throw new Error(`${model} did not come back: ${String(cause)}`, { cause })
    } finally {
      excuse.to = performance.now()
      this.#readySince.set(model, excuse.to)
    }
  }
}

/** The process may have ended by itself. */
function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
