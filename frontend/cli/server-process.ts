import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

/** Process title of a server, which tells it from another process that got the same pid. */
export const PROCESS_TITLE = 'torchserve-ts'

const HAS_PROC = existsSync('/proc/self/cmdline')

/** Whether this pid is a running torchserve-ts server. Zombies count as ended. */
export function isServerProcess(pid: number): boolean {
  return commandLine(pid)?.startsWith(PROCESS_TITLE) ?? false
}

/** Poll interval in milliseconds. Longer without /proc, because each `ps` is a process. */
export const POLL_MS = HAS_PROC ? 20 : 250

function commandLine(pid: number): string | undefined {
  try {
    return HAS_PROC
      ? readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      : execFileSync('ps', ['-o', 'command=', '-p', String(pid)], {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
        })
  } catch {
    return undefined
  }
}
