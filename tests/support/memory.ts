import { readFileSync, writeFileSync } from 'node:fs'

/** Resident memory of processes, in bytes, from /proc. */
export function residentBytes(...pids: number[]): number {
  return pids.reduce((sum, pid) => {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return sum + Number(line?.[1] ?? 0) * 1024
  }, 0)
}

/** The most resident memory that a process had since the last call for it, in bytes. */
export function peakBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)![1]) * 1024
}
