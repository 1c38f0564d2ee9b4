import { queryGpus } from '../observe/metrics/nvidia-smi.ts'

/**
 * The GPUs that this server may use, as CUDA_VISIBLE_DEVICES names them (index or UUID); a GPU's id is its place in this list. None
 * where there is no nvidia-smi.
 * @param limit number_of_gpu; 0 asks nobody
 */
export async function findGpus(limit = Infinity, env: NodeJS.ProcessEnv = process.env): Promise<string[]> {
  if (limit === 0) return []
  const indexes = ((await queryGpus([], env)) ?? []).map(([index]) => index!)
  return visible(indexes, env['CUDA_VISIBLE_DEVICES']).slice(0, limit)
}

/** As CUDA reads the variable: it stops at the first name that is no device. Unset: all devices. */
function visible(indexes: string[], variable: string | undefined): string[] {
  if (variable === undefined) return indexes
  const names = variable.split(',').map((name) => name.trim())
  const end = names.findIndex((name) => !indexes.includes(name) && !/^(GPU|MIG)-/.test(name))
  return end < 0 ? names : names.slice(0, end)
}

/** What each GPU does now, as describe shows it (spec 1.8), by its id; the ids are those of `gpus`. */
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
