import { startTimer } from '../../../common/timer.ts'
import { measureGpus } from './gpus.ts'
import { cpuTimes, cpuUtilization, disk, memory } from './machine.ts'
import type { ServerMetrics } from './server-metrics.ts'

/** Samples CPU, memory, disk and NVIDIA GPUs periodically. Starts no process but nvidia-smi. */
export class SystemMetrics {
  readonly #metrics: ServerMetrics
  readonly #warn: (message: string) => void
  #cpu = cpuTimes()
  #hasGpus = true
  #timer: NodeJS.Timeout | undefined

  constructor(metrics: ServerMetrics, warn: (message: string) => void) {
    this.#metrics = metrics
    this.#warn = warn
  }

  /** Samples now and every `seconds`. */
  start(seconds: number): void {
    void this.#look()
    this.#timer = startTimer(() => this.start(seconds), seconds * 1000).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  async #look(): Promise<void> {
    try {
      const cpu = cpuTimes()
      const measured = { ...cpuUtilization(this.#cpu, cpu), ...memory(), ...(await disk()) }
      this.#cpu = cpu
      for (const [name, value] of Object.entries(measured)) this.#metrics.system(name, value)
      if (this.#hasGpus) await this.#lookAtGpus()
    } catch (error) {
      this.#warn(`The system metrics cannot be read: ${String(error)}`)
    }
  }

  async #lookAtGpus(): Promise<void> {
    const gpus = await measureGpus()
    this.#hasGpus = gpus !== undefined
    for (const { device, values } of gpus ?? []) {
      for (const [name, value] of Object.entries(values)) this.#metrics.system(name, value, device)
    }
  }
}
