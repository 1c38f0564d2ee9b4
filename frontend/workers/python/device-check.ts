import { ServeError } from '../../../common/errors.ts'
import type { CommandLine } from '../worker-process.ts'
import { runLogged } from './environment/run-logged.ts'

/** Milliseconds. Importing PyTorch takes seconds, on a cold disk half a minute. */
const LIMIT_MS = 120_000
const SAYS = 'device: '

/** As handlers use a GPU; CUDA's words are in the exception. */
export const DEVICE_SCRIPT = `
import sys
try:
    import torch
    torch.zeros(1, device=sys.argv[1])
except BaseException as error:
    sys.exit("${SAYS}" + " ".join(str(error).split()))
`

/** Checks that run, and those of devices that could be used; others are made again at the next start. */
const known = new Map<string, Promise<string | undefined>>()

/**
 * Whether a process that is started like a worker can use its GPU.
 * @param commandLine runs DEVICE_SCRIPT
 * @param key equal for equal checks
 * @returns why not, in the words of the library; undefined: it can
 */
export function checkDevice(commandLine: CommandLine, key: string): Promise<string | undefined> {
  const before = known.get(key)
  if (before !== undefined) return before
  const checking = run(commandLine)
  known.set(key, checking)
  void checking.then((words) => words !== undefined && known.delete(key))
  return checking
}

async function run({ command, args, env, cwd }: CommandLine): Promise<string | undefined> {
  let words: string | undefined
  const log = (line: string): void => {
    if (line.startsWith(SAYS)) words = line.slice(SAYS.length)
  }
  const { signal } = new AbortController()
  try {
    const problem = await runLogged(
      { command, args },
      { env: { ...env }, cwd, limitMs: LIMIT_MS, signal, log },
    )
    return problem === undefined ? undefined : (words ?? problem.split('\n').at(-1))
  } catch (error) {
    return ServeError.from(error).message
  }
}
