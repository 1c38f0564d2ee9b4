import type { ModelSettings } from '../models/model-settings.ts'

/** The GPUs of one worker. */
export interface DeviceLease {
  /** GPU ids; empty on CPU. A rank group has parallelLevel of them. */
  readonly ids: readonly number[]
  /** Returns the GPUs when the worker is gone. */
  release(): void
}

const CPU: DeviceLease = { ids: [], release: () => undefined }

/**
 * Assigns GPUs to workers, with one account over all models: each gets the GPU with the fewest workers, or
 * for a rank group the group of adjacent GPUs; among equals the next in turn. Without deviceIds, and with
 * several GPUs, GPU 1 comes first, as in TorchServe (WorkLoadManager.java).
 */
export class Devices {
  /** Workers on each GPU, by id. */
  readonly #users: number[]
  /** The slot whose turn it is, of models with slots of their own. */
  readonly #next = new WeakMap<ModelSettings, number>()
  #nextPlain = 1

  /** @param count number of GPUs of this server */
  constructor(count: number) {
    this.#users = Array<number>(count).fill(0)
  }

  assign(settings: ModelSettings): DeviceLease {
    const { deviceType, deviceIds, parallelLevel } = settings
    const slots = groups(deviceIds ?? [...this.#users.keys()], Math.max(1, parallelLevel))
    if (deviceType === 'cpu' || slots.length === 0) return CPU
    const isPlain = deviceIds === undefined && parallelLevel === 0
    const next = (isPlain ? this.#nextPlain : (this.#next.get(settings) ?? 0)) % slots.length
    const inTurn = [...slots.keys()].map((step) => (next + step) % slots.length)
    const load = (slot: number): number => slots[slot]!.reduce((sum, id) => sum + this.#users[id]!, 0)
    const best = inTurn.reduce((least, slot) => (load(slot) < load(least) ? slot : least))
    if (isPlain) this.#nextPlain = best + 1
    else this.#next.set(settings, best + 1)
    const ids = slots[best]!
    for (const id of ids) this.#users[id]! += 1
    let held = true
    return {
      ids,
      release: () => {
        if (held) for (const id of ids) this.#users[id]! -= 1
        held = false
      },
    }
  }
}

/** Adjacent GPUs in groups of `size`. A remainder is not used. */
function groups(ids: readonly number[], size: number): number[][] {
  return Array.from({ length: Math.floor(ids.length / size) }, (_, group) => [
    ...ids.slice(group * size, (group + 1) * size),
  ])
}
