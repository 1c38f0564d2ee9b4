import type { ServeError } from '../../common/errors.ts'

/** Why a worker process ended, in words, with what it wrote to stderr at last. */
export interface ExitCause {
  at: Date
  reason: string
  /** Last lines of stderr, oldest first. */
  stderr: string[]
  /** SIGKILL from outside, as the kernel's out-of-memory killer sends it, or what a shell makes of that (137), or out of heap. */
  outOfMemory: boolean
}

interface Exit {
  exitCode: number | undefined
  signal: string | undefined
  /** Whether we sent SIGKILL. */
  killed: boolean
  spawnError: string | undefined
  stderr: readonly string[]
  /** Why we ended it, if we did. */
  fault: ServeError | undefined
}

/** Turns exit codes and signals into words. */
export function describeExit(exit: Exit): ExitCause {
  const heap = exit.stderr.some((line) => line.includes('heap out of memory'))
  return {
    at: new Date(),
    reason: heap ? 'The process ran out of heap memory' : words(exit),
    stderr: [...exit.stderr],
    outOfMemory: heap || exit.exitCode === 137 || (exit.signal === 'SIGKILL' && !exit.killed),
  }
}

function words({ exitCode, signal, spawnError, fault }: Exit): string {
  if (fault?.code === 'PROTOCOL') return `The worker broke the protocol: ${fault.message}`
  if (fault !== undefined) return fault.message
  if (spawnError !== undefined) return `The process could not be started: ${spawnError}`
  if (signal !== undefined) return `The process was killed by ${signal}`
  return `The process exited with code ${exitCode}`
}
