import { readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { cpus, freemem, totalmem } from 'node:os'
import { startTimer } from '../../../common/timer.ts'
import { measureAccelerators } from './accelerators.ts'
import type { ServerMetrics } from './declared-metrics.ts'

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

/** Measurements by TorchServe's names (docs/metrics-and-logs.md). */
export type Measurements = Record<string, number>

const MEGABYTE = 1024 ** 2
const GIGABYTE = 1024 ** 3

/** Time of all cores since boot, in milliseconds. */
export interface CpuTimes {
  readonly busy: number
  readonly total: number
}

function cpuTimes(): CpuTimes {
  let busy = 0
  let idle = 0
  for (const { times } of cpus()) {
    busy += times.user + times.nice + times.sys + times.irq
    idle += times.idle
  }
  return { busy, total: busy + idle }
}

/** Percent of the time between two samples. */
export function cpuUtilization(before: CpuTimes, now: CpuTimes): Measurements {
  const total = now.total - before.total
  return { CPUUtilization: total <= 0 ? 0 : percent(now.busy - before.busy, total) }
}

export function memory(): Measurements {
  const total = totalmem()
  const available = availableMemory()
  return {
    MemoryUsed: (total - available) / MEGABYTE,
    MemoryAvailable: available / MEGABYTE,
    MemoryUtilization: percent(total - available, total),
  }
}

/** The file system of `/`. Space reserved for root counts as neither used nor available. */
export async function disk(): Promise<Measurements> {
  const { blocks, bfree, bavail, bsize } = await statfs('/')
  const used = blocks - bfree
  return {
    DiskUsage: (used * bsize) / GIGABYTE,
    DiskAvailable: (bavail * bsize) / GIGABYTE,
    DiskUtilization: percent(used, used + bavail),
  }
}

/** Memory available without swapping, or else free memory. */
function availableMemory(): number {
  try {
    const kilobytes = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'latin1'))?.[1]
    if (kilobytes !== undefined) return Number(kilobytes) * 1024
  } catch {
    // not Linux
  }
  return freemem()
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 1000) / 10
}
