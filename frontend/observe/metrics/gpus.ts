import type { Measurements } from './machine.ts'
import { queryGpus } from './nvidia-smi.ts'

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
const NAMES = Object.keys(FIELDS)

/** What each GPU does now; what one does not tell is left out. Undefined where there is no nvidia-smi. */
export async function measureGpus(env?: NodeJS.ProcessEnv): Promise<GpuMeasurements[] | undefined> {
  const rows = await queryGpus(Object.values(FIELDS), env)
  return rows?.map(([device, ...fields]) => {
    const values = NAMES.map((name, at): [string, number] => [name, Number(fields[at] || NaN)])
    return { device: device!, values: Object.fromEntries(values.filter(([, value]) => !Number.isNaN(value))) }
  })
}
