import type { ServeError } from '../../common/errors.ts'

/** Why a worker process ended, as a sentence, with the end of its stderr. */
export interface ExitCause {
  at: Date
  reason: string
  /** The same for strangers: without names, paths and messages. */
  publicCause: string
  /** The last lines of stderr, oldest first. */
  stderr: string[]
  /**
   * SIGKILL from outside, for example by the kernel's out-of-memory killer; the same as exit code 137 of a
   * shell; or an exhausted heap.
   */
  outOfMemory: boolean
  /** The signal from outside, or of a crash, that ended it. Absent: none. */
  signal?: string
  /** Why it could not be started, or why the server ended it. Absent: neither. */
  cause?: Error
}

interface Exit {
  exitCode: number | undefined
  signal: string | undefined
  /** Whether the server sent SIGKILL. */
  killed: boolean
  spawnError: Error | undefined
  stderr: readonly string[]
  /** Whether V8 reported that its heap is full. */
  heapIsFull: boolean
  /** Why the server ended it, if it did. */
  fault: ServeError | undefined
}

/** What strangers may read when a worker reports that its handler did not load. */
export const HANDLER_THREW = 'the handler threw while it loaded'

/** What they may read when a process ended before its handler was loaded. */
export function whileLoading({ publicCause }: ExitCause): string {
  return `${publicCause} while it loaded`
}

/** The handler of a start did not load. */
export function loadExit({ message, detail }: ServeError, publicCause: string): ExitCause {
  const stderr = detail?.split('\n') ?? []
  return { at: new Date(), reason: message, publicCause, stderr, outOfMemory: false }
}

/** Converts exit codes and signals to a sentence. */
export function describeExit(exit: Exit): ExitCause {
  const heap = exit.heapIsFull
  return {
    at: new Date(),
    reason: heap ? 'The process ran out of heap memory' : words(exit),
    publicCause: publicWords(exit),
    stderr: [...exit.stderr],
    outOfMemory: heap || (!exit.killed && (exit.exitCode === 137 || exit.signal === 'SIGKILL')),
    ...(exit.signal !== undefined && !exit.killed && { signal: exit.signal }),
    cause: exit.fault ?? exit.spawnError,
  }
}

function words({ exitCode, signal, spawnError, fault }: Exit): string {
  if (fault?.code === 'PROTOCOL') return `The worker violated the protocol: ${fault.message}`
  if (fault !== undefined) return fault.message
  if (spawnError !== undefined) return `The process could not be started: ${spawnError.message}`
  if (signal !== undefined) return `The process was killed by ${signal}`
  return `The process exited with code ${exitCode}`
}

function publicWords({ exitCode, signal, spawnError, fault }: Exit): string {
  if (fault?.code === 'PROTOCOL') return 'its worker violated the protocol'
  if (fault !== undefined) return 'its worker ended'
  if (spawnError !== undefined) return 'its worker could not be started'
  if (signal !== undefined) return `its worker was killed by ${signal}`
  return `its worker exited with code ${exitCode}`
}
