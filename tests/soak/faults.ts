import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../support/random.ts'
import type { Server } from '../support/server-process.ts'
import { GUEST, isVictim, LOADED, SCALED, VICTIMS, WORKERS } from './models.ts'

type Kind = 'kill' | 'exit' | 'pause' | 'scale' | 'unregister'

/** Milliseconds between two deaths on one model: a worker that was ready for so long starts again at once. */
const RECOVERED_MS = 11_000
/** Milliseconds in which a model has its workers back. */
const BACK_MS = 60_000
const PAUSE_MS = { least: 100, most: 2_000 }
const BETWEEN_MS = { least: 100, most: 1_500 }

/** A time in which requests of a model may fail. Open until all its workers are ready again. */
interface Window {
  readonly from: number
  to: number
}

/**
 * Does harm at random. Killing and ending a process is an excuse for requests of that model at that time, and
 * taking a model away for refusing its requests; stopping a process for a while and scaling are none for
 * anybody.
 */
export class Faults {
  readonly counts = new Map<Kind, number>()
  /** What went wrong with the faults themselves. */
  readonly errors: string[] = []
  readonly #server: Server
  readonly #random: Random
  readonly #windows = new Map<string, Window[]>()
  readonly #readySince = new Map<string, number>()
  readonly #paused = new Set<number>()
  /** What runs beside the loop. */
  readonly #running = new Set<Promise<void>>()

  constructor(server: Server, random: Random) {
    this.#server = server
    this.#random = random
  }

  /** Injects faults until the signal aborts; then everything is as before. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { least, most } = BETWEEN_MS
      await sleep(this.#random.integer(least, most), undefined, { signal }).catch(() => undefined)
      if (!signal.aborted) this.#start(this.#random.pick(['kill', 'pause', 'scale', 'unregister']))
    }
    while (this.#running.size > 0) await Promise.all(this.#running)
    for (const model of SCALED) await this.#scale(model, WORKERS)
    await this.#register()
  }

  /** Whether a request of that model, from then until now, may have met a fault. */
  excuses(model: string, from: number): boolean {
    return this.#windows.get(model)?.some((window) => window.to >= from) ?? false
  }

  /**
   * Leave to let a handler of that model end its process. The excuse begins with it; the client calls what it
   * gets when its request has ended. Undefined: not now.
   */
  leaveToExit(model: string): (() => void) | undefined {
    if (!isVictim(model) || !this.#isRecovered(model)) return undefined
    this.#count('exit')
    const window = this.#open(model)
    let ended = (): void => undefined
    const request = new Promise<void>((resolve) => (ended = resolve))
    this.#beside(request.then(() => this.#untilReady(model, window, [])))
    return ended
  }

  #start(kind: Exclude<Kind, 'exit'>): void {
    switch (kind) {
      case 'kill':
        return this.#beside(this.#kill(this.#random.pick(VICTIMS)))
      case 'pause':
        return this.#beside(this.#pause(this.#random.pick(LOADED)))
      case 'scale':
        return this.#beside(this.#resize(this.#random.pick(SCALED)))
      case 'unregister':
        return this.#beside(this.#replace())
    }
  }

  #beside(work: Promise<void>): void {
    const running = work.catch((error: unknown) => void this.errors.push(String(error)))
    this.#running.add(running)
    void running.finally(() => this.#running.delete(running))
  }

  async #kill(model: string): Promise<void> {
    if (!this.#isRecovered(model)) return
    const window = this.#open(model)
    const pids = await this.#pids(model)
    const killed = pids.slice(0, this.#random.integer(1, Math.max(1, pids.length)))
    for (const pid of killed) signalTo(pid, 'SIGKILL')
    this.#count('kill', killed.length)
    await this.#untilReady(model, window, killed)
  }

  async #pause(model: string): Promise<void> {
    const pids = await this.#pids(model)
    const pid = pids.length === 0 ? undefined : this.#random.pick(pids)
    if (pid === undefined || this.#paused.has(pid)) return
    this.#paused.add(pid)
    this.#count('pause')
    signalTo(pid, 'SIGSTOP')
    await sleep(this.#random.integer(PAUSE_MS.least, PAUSE_MS.most))
    signalTo(pid, 'SIGCONT')
    this.#paused.delete(pid)
  }

  async #resize(model: string): Promise<void> {
    this.#count('scale')
    await this.#scale(model, this.#random.integer(1, WORKERS + 1))
  }

  /** Takes the guest away while its clients stream, and brings it back. */
  async #replace(): Promise<void> {
    if (this.#windows.get(GUEST)?.at(-1)?.to === Infinity) return
    this.#count('unregister')
    const own = this.#open(GUEST)
    const { status, json } = await this.#server.manage('DELETE', `/models/${GUEST}`)
    if (status !== 200) this.errors.push(`unregister: ${status} ${JSON.stringify(json)}`)
    await this.#register()
    own.to = performance.now()
  }

  async #register(): Promise<void> {
    const options = `url=${GUEST}&model_name=${GUEST}&initial_workers=1&synchronous=true`
    const { status, json } = await this.#server.manage('POST', `/models?${options}`)
    if (status !== 200 && status !== 409) this.errors.push(`register: ${status} ${JSON.stringify(json)}`)
  }

  async #scale(model: string, workers: number): Promise<void> {
    const path = `/models/${model}?min_worker=${workers}&max_worker=${workers}`
    const { status, json } = await this.#server.manage('PUT', path)
    if (status !== 202) this.errors.push(`scale ${model}: ${status} ${JSON.stringify(json)}`)
  }

  async #pids(model: string): Promise<number[]> {
    const versions = await this.#server.describe(model)
    return versions[0]!.workers.filter(({ status }) => status === 'READY').map(({ pid }) => pid)
  }

  #isRecovered(model: string): boolean {
    return performance.now() - (this.#readySince.get(model) ?? -Infinity) > RECOVERED_MS
  }

  #open(model: string): Window {
    const window = { from: performance.now(), to: Infinity }
    const windows = this.#windows.get(model) ?? []
    windows.push(window)
    this.#windows.set(model, windows.slice(-10))
    this.#readySince.set(model, Infinity)
    return window
  }

  /** Closes the window when all workers are ready and none of them is one that was killed. */
  async #untilReady(model: string, window: Window, killed: number[]): Promise<void> {
    await this.#server
      .until(
        () => this.#server.describe(model),
        ([version]) =>
          version!.workers.every(({ status, pid }) => status === 'READY' && !killed.includes(pid)),
        BACK_MS,
      )
      .catch((error: unknown) => this.errors.push(`${model} did not come back: ${String(error)}`))
    window.to = performance.now()
    this.#readySince.set(model, window.to)
  }

  #count(kind: Kind, by = 1): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + by)
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
