import { residentBytes } from '../processes.ts'
import type { Target } from '../targets/target.ts'
import { pause } from './figure.ts'

const STEADY_BYTES = 256 * 1024

/** Memory of a target in bytes, once it is stable or after ten seconds. */
export async function steadyResidentBytes(target: Target): Promise<number> {
  let last = residentBytes(target.pids())
  for (let reading = 0, steady = 0; reading < 50 && steady < 5; reading++) {
    await pause(200)
    const now = residentBytes(target.pids())
    steady = Math.abs(now - last) < STEADY_BYTES ? steady + 1 : 0
    last = now
  }
  return last
}
