import { isMachineFault } from '../../../../common/errors.ts'
import { missingInterpreter } from './missing.ts'
import { probe, type Probe } from './probe.ts'

/** Maximum number of remembered interpreters; the oldest is forgotten. */
const MAX_KNOWN = 256
/**
 * Running probes, and results without missing packages. Other results are asked again, because packages may
 * be installed later.
 */
const known = new Map<string, Promise<Probe>>()

/**
 * Probes the commands in order and returns the result of the first that runs.
 * @param home folder that is searched first for TorchServe's package; '' for none
 * @param packages folder of packages that the workers get in addition to those of the interpreter
 * @throws ServeError WORKER_START_FAILED when none can be run
 */
export function askOnce(
  commands: readonly string[],
  home: string,
  packages: string | undefined,
): Promise<Probe> {
  const key = JSON.stringify([commands, home, packages])
  const before = known.get(key)
  if (before !== undefined) return before
  const asking = ask(commands, home, packages)
  known.set(key, asking)
  asking.then(
    ({ missing }) => missing.length > 0 && known.delete(key),
    () => known.delete(key),
  )
  if (known.size > MAX_KNOWN) known.delete(known.keys().next().value!)
  return asking
}

async function ask(commands: readonly string[], home: string, packages: string | undefined): Promise<Probe> {
  const failures: string[] = []
  let cause: Error | undefined
  for (const command of commands) {
    const found = await probe(command, home, packages)
    if (!('failure' in found)) return found
    failures.push(`${command}: ${found.failure}`)
    cause = found.cause
    // The next command may not be the one that would have run.
    if (isMachineFault(cause)) break
  }
  throw missingInterpreter(failures, cause)
}
