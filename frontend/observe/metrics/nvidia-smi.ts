import { execa } from 'execa'

const COMMAND = 'nvidia-smi'
const LIMIT_MS = 20_000

/**
 * Queries nvidia-smi. Returns one row of strings per GPU: its index, then the fields in order (without units;
 * `[N/A]` for values that the GPU does not report).
 * @param fields names of `nvidia-smi --help-query-gpu`
 * @returns undefined without nvidia-smi, so that it need not be queried again; no rows when it fails
 */
export async function queryGpus(
  fields: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<string[][] | undefined> {
  const { stdout, failed, code } = await execa(
    COMMAND,
    [`--query-gpu=${['index', ...fields].join(',')}`, '--format=csv,noheader,nounits'],
    { env, extendEnv: false, reject: false, timeout: LIMIT_MS, stdin: 'ignore', stderr: 'ignore' },
  )
  if (code === 'ENOENT') return undefined
  if (failed) return []
  const rows = stdout.split('\n').map((line) => line.split(',').map((cell) => cell.trim()))
  return rows.filter(([index]) => /^\d+$/.test(index ?? ''))
}
