import { readFileSync } from 'node:fs'

/** Whether a process of that id runs (a zombie of ours counts until it is reaped). */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** The same, but a process that has ended and that nobody has reaped does not count (Linux). */
export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return false
  }
}

/** The processes that a process has started or adopted (Linux). */
export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
  return text.split(' ').flatMap((each) => Number(each) || [])
}

/** The words of its command line (Linux). */
export function commandOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').slice(0, -1)
}
