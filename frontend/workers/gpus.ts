import { queryGpus } from '../observe/metrics/nvidia-smi.ts'

/**
 * The GPUs that this server may use, as CUDA_VISIBLE_DEVICES names them (index or UUID). A GPU's id is its
 * index in this list. Empty without nvidia-smi.
 * @param limit number_of_gpu; 0 skips the query
 */
export async function findGpus(limit = Infinity, env: NodeJS.ProcessEnv = process.env): Promise<string[]> {
  if (limit === 0) return []
  const indexes = ((await queryGpus([], env)) ?? []).map(([index]) => index!)
  return visible(indexes, env['CUDA_VISIBLE_DEVICES']).slice(0, limit)
}

/** CUDA's rule: the list ends at the first name that is not a device. Unset: all devices. */
function visible(indexes: string[], variable: string | undefined): string[] {
  if (variable === undefined) return indexes
  const names = variable.split(',').map((name) => name.trim())
  const end = names.findIndex((name) => !indexes.includes(name) && !/^(GPU|MIG)-/.test(name))
  return end < 0 ? names : names.slice(0, end)
}

/** The utilization of each GPU for describe, by id; the ids are indexes of `gpus`. */
export async function gpuUsage(
  gpus: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<ReadonlyMap<number, string>> {
  const rows = (await queryGpus(['uuid', 'utilization.gpu', 'utilization.memory', 'memory.used'], env)) ?? []
  const usage = new Map<number, string>()
  for (const [index, uuid, busy, memory, used] of rows) {
    const id = gpus.findIndex((name) => name === index || (name.length > 4 && uuid?.startsWith(name)))
    if (id < 0) continue
    usage.set(
      id,
      `gpuId::${id} utilization.gpu::${busy} % utilization.memory::${memory} % memory.used::${used} MiB`,
    )
  }
  return usage
}
