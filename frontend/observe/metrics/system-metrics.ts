import { startTimer } from '../../../common/timer.ts'
import { measureAccelerators } from './accelerators.ts'
import { cpuTimes, cpuUtilization, disk, memory } from './machine.ts'
import type { ServerMetrics } from './server-metrics.ts'

/** Samples CPU, memory, disk and GPUs periodically. Starts no process but the tool of the GPUs. */
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
    const gpus = await measureAccelerators()
    this.#hasGpus = gpus !== undefined
    for (const { gpu, utilization, memoryUtilization, memoryUsed } of gpus ?? []) {
      const measured = {
        GPUUtilization: utilization,
        GPUMemoryUtilization: memoryUtilization,
        GPUMemoryUsed: memoryUsed,
      }
      for (const [name, value] of Object.entries(measured))
        if (value !== undefined) this.#metrics.system(name, value, gpu)
    }
  }
}
