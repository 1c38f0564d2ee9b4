import { readFileSync } from 'node:fs'

/**
 * Kills the rest of the process group that a process leads or led. @param pid ignored unless it is above 1
 */
export function killGroup(pid: number | undefined): void {
  if (pid !== undefined && pid > 1) kill(-pid)
}

/** The same for a child process, and the process itself. */
export function killSession(pid: number): void {
  if (pid <= 1) return
  killGroup(pid)
  kill(pid)
}

function kill(target: number): void {
  try {
    process.kill(target, 'SIGKILL')
  } catch {
    // It has already ended.
  }
}

/** The first child of a process of one thread, on Linux. @returns undefined if it has none */
export function firstChild(pid: number): number | undefined {
  try {
    const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
    return Number(first) || undefined
  } catch {
    return undefined
  }
}
