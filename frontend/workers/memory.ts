import { readFileSync } from 'node:fs'

/** Resident memory of the processes in bytes, from the kernel (Linux); 0 on other systems. */
export function residentBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + statusBytes(pid, 'VmRSS'), 0)
}

/**
 * Bytes that this Node.js has reserved for itself and does not use; 0 on other systems than Linux.
 * RLIMIT_DATA counts them: in version 24, V8 keeps 512 MiB for code.
 */
export function reservedBytes(): number {
  return Math.max(0, statusBytes('self', 'VmData') - statusBytes('self', 'RssAnon'))
}

/** A line of the process's status; 0 where there is none. */
function statusBytes(pid: number | 'self', line: 'VmRSS' | 'VmData' | 'RssAnon'): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    return Number(new RegExp(`^${line}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}
