import { readFileSync } from 'node:fs'

/** Resident memory of the processes in bytes, from the kernel (Linux); 0 on other systems. */
export function residentBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + residentBytesOf(pid), 0)
}

function residentBytesOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

/**
 * Bytes that this Node.js has reserved for itself and does not use; 0 on other systems than Linux.
 * RLIMIT_DATA counts them: in version 24, V8 keeps 512 MiB for code.
 */
export function reservedBytes(): number {
  try {
    const status = readFileSync('/proc/self/status', 'latin1')
    const kibibytes = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0)
    return Math.max(0, kibibytes('VmData') - kibibytes('RssAnon')) * 1024
  } catch {
    return 0
  }
}
