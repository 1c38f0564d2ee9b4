import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

/** What a serving process calls itself, so that it can be told from another that got its pid. */
export const PROCESS_TITLE = 'torchserve-ts'

const HAS_PROC = existsSync('/proc/self/cmdline')

/** Whether a process of this number runs and is a serving torchserve-ts. Zombies have ended. */
export function isServerProcess(pid: number): boolean {
  return commandLine(pid)?.startsWith(PROCESS_TITLE) ?? false
}

/** How long to wait between two looks at a process that is ending: `ps` costs a process, /proc nothing. */
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
