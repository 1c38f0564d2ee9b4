import { execFile } from 'node:child_process'
import type { Measurements } from './machine.ts'

/** One GPU's measurements under TorchServe's names (spec 8.1). */
export interface GpuMeasurements {
  /** Its index. */
  device: string
  values: Measurements
}

const FIELDS = {
  GPUUtilization: 'utilization.gpu',
  GPUMemoryUtilization: 'utilization.memory',
  GPUMemoryUsed: 'memory.used',
}
const ARGUMENTS = [
  `--query-gpu=${['index', ...Object.values(FIELDS)].join(',')}`,
  '--format=csv,noheader,nounits',
]
const LIMIT_MS = 10_000

/**
 * Asks `nvidia-smi`, where it is installed.
 * @returns undefined where it is not: it need not be asked again
 */
export function nvidiaGpus(): Promise<GpuMeasurements[] | undefined> {
  return new Promise((resolve) => {
    execFile('nvidia-smi', ARGUMENTS, { timeout: LIMIT_MS }, (error, output) => {
      if (error === null) resolve(parseGpus(output))
      else resolve(error.code === 'ENOENT' ? undefined : [])
    })
  })
}

/** One line per GPU; what a GPU does not tell (`[N/A]`) is left out. */
export function parseGpus(output: string): GpuMeasurements[] {
  return output
    .split('\n')
    .map((line) => line.split(',').map((field) => field.trim()))
    .filter(([index]) => /^\d+$/.test(index ?? ''))
    .map(([device, ...fields]) => {
      const pairs = Object.keys(FIELDS).map((name, at): [string, number] => [name, Number(fields[at] || NaN)])
      return {
        device: device!,
        values: Object.fromEntries(pairs.filter(([, value]) => Number.isFinite(value))),
      }
    })
}
