import type { Measurements } from './machine.ts'
import { queryGpus } from './nvidia-smi.ts'

/** Measurements of one GPU, under TorchServe's names (docs/metrics-and-logs.md). */
export interface GpuMeasurements {
  /** Index of the GPU. */
  device: string
  values: Measurements
}

const FIELDS = {
  GPUUtilization: 'utilization.gpu',
  GPUMemoryUtilization: 'utilization.memory',
  GPUMemoryUsed: 'memory.used',
}
const NAMES = Object.keys(FIELDS)

/** Current measurements of each GPU, without values that it does not report; undefined without nvidia-smi. */
export async function measureGpus(env?: NodeJS.ProcessEnv): Promise<GpuMeasurements[] | undefined> {
  const rows = await queryGpus(Object.values(FIELDS), env)
  return rows?.map(([device, ...fields]) => {
    const values = NAMES.map((name, at): [string, number] => [name, Number(fields[at] || NaN)])
    return { device: device!, values: Object.fromEntries(values.filter(([, value]) => !Number.isNaN(value))) }
  })
}
