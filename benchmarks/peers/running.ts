import type { Target } from '../targets/target.ts'
import type { Model, Peer } from './peer.ts'

/** A peer that runs, and is started again when it has ended by itself. */
export class Running {
  readonly peer: Peer
  readonly #models: readonly Model[]
  readonly #workers: number
  readonly #suffix: string
  #target: Target

  private constructor(peer: Peer, models: readonly Model[], workers: number, suffix: string, target: Target) {
    this.peer = peer
    this.#models = models
    this.#workers = workers
    this.#suffix = suffix
    this.#target = target
  }

  /** @param suffix of its name in the output */
  static async start(peer: Peer, models: readonly Model[], workers: number, suffix = ''): Promise<Running> {
    return new Running(peer, models, workers, suffix, await peer.start(models, workers))
  }

  get name(): string {
    return this.peer.title + this.#suffix
  }

  get target(): Target {
    return this.#target
  }

  /** Starts it again unless it answers. @returns whether it had to */
  async revive(): Promise<boolean> {
    const response = await fetch(this.#target.restOrigin! + this.peer.health).catch(() => undefined)
    if (response?.status === 200) return false
    await this.stop()
    this.#target = await this.peer.start(this.#models, this.#workers)
    return true
  }

  async stop(): Promise<void> {
    await this.#target.stop()
  }
}
