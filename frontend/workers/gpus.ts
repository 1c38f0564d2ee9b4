import { execa } from 'execa'

const SMI = 'nvidia-smi'
const SMI_TIMEOUT_MS = 20_000

/**
 * The GPUs that this server may use, as CUDA_VISIBLE_DEVICES names them (index or UUID); a GPU's id is its place in this list. None
 * where there is no nvidia-smi.
 * @param limit number_of_gpu; 0 asks nobody
 */
export async function findGpus(limit = Infinity, env: NodeJS.ProcessEnv = process.env): Promise<string[]> {
  if (limit === 0) return []
  const indexes = (await query(['index'], env)).map(([index]) => index!)
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
  const rows = await query(['index', 'uuid', 'utilization.gpu', 'utilization.memory', 'memory.used'], env)
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

async function query(fields: string[], env: NodeJS.ProcessEnv): Promise<string[][]> {
  const { stdout, failed } = await execa(
    SMI,
    [`--query-gpu=${fields.join(',')}`, '--format=csv,noheader,nounits'],
    { env, extendEnv: false, reject: false, timeout: SMI_TIMEOUT_MS, stdin: 'ignore', stderr: 'ignore' },
  )
  if (failed) return []
  const rows = stdout.split('\n').map((line) => line.split(',').map((cell) => cell.trim()))
  return rows.filter(([index]) => /^\d+$/.test(index ?? ''))
}
