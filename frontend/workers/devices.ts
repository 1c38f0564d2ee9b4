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
 * Assigns GPUs to workers: each gets the GPU with the fewest workers, or for a rank group the group of
 * adjacent GPUs; among equals the next in turn. Without deviceIds, and with several GPUs, GPU 1 comes first,
 * as in TorchServe (WorkLoadManager.java).
 */
export class Devices {
  readonly #plain: Slots
  readonly #ofModels = new WeakMap<ModelSettings, Slots>()

  /** @param count number of GPUs of this server */
  constructor(count: number) {
    const ids = Array.from({ length: count }, (_, id) => id)
    this.#plain = new Slots(groups(ids, 1), 1)
  }

  assign(settings: ModelSettings): DeviceLease {
    if (settings.deviceType === 'cpu') return CPU
    return this.#slotsOf(settings).take()
  }

  #slotsOf(settings: ModelSettings): Slots {
    const { deviceIds, parallelLevel } = settings
    if (deviceIds === undefined && parallelLevel === 0) return this.#plain
    let slots = this.#ofModels.get(settings)
    if (slots === undefined) {
      const ids = deviceIds ?? this.#plain.ids()
      slots = new Slots(groups(ids, Math.max(1, parallelLevel)), 0)
      this.#ofModels.set(settings, slots)
    }
    return slots
  }
}

class Slots {
  readonly #slots: readonly (readonly number[])[]
  readonly #users: number[]
  #next: number

  constructor(slots: readonly (readonly number[])[], first: number) {
    this.#slots = slots
    this.#users = slots.map(() => 0)
    this.#next = first
  }

  ids(): number[] {
    return this.#slots.flat()
  }

  take(): DeviceLease {
    const count = this.#slots.length
    if (count === 0) return CPU
    let best = this.#next % count
    for (let step = 1; step < count; step++) {
      const slot = (this.#next + step) % count
      if (this.#users[slot]! < this.#users[best]!) best = slot
    }
    this.#next = (best + 1) % count
    this.#users[best]! += 1
    let held = true
    return {
      ids: this.#slots[best]!,
      release: () => {
        if (held) this.#users[best]! -= 1
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
