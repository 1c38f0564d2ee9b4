import { readFileSync } from 'node:fs'

/** Resident memory of processes, in bytes, from /proc. */
export function residentBytes(...pids: number[]): number {
  return pids.reduce((sum, pid) => {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return sum + Number(line?.[1] ?? 0) * 1024
  }, 0)
}
