import { memoryBytes } from '../../common/processors.ts'
import type { JobRequest } from './job.ts'
import { queueFull } from './queue-full.ts'

const LEAST_DEFAULT_BYTES = 2 ** 28
/** Share of the memory that inputs may take by default. */
const DEFAULT_SHARE = 16
/** Smaller inputs do not ask all workers for what they have not taken. */
const LARGE_BYTES = 65_536

/** The fields of a job that the budget uses; nothing else writes them. */
export interface Budgeted {
  /** Undefined: the job is not open, or there is no budget. */
  budget: InputBudget | undefined
  /** Bytes that count for it. */
  heldBytes: number
}

/**
 * Bounds the bytes of all requests together that wait for a worker, are on their way to one, or are kept for
 * further nodes of a workflow. Each queue bounds its number of requests only.
 */
export class InputBudget {
  readonly #limit: number
  readonly #unsent: () => number
  #held = 0

  /**
   * @param limit bytes
   * @param unsent bytes that were sent to workers and that they have not taken
   */
  constructor(limit: number, unsent: () => number) {
    this.#limit = limit
    this.#unsent = unsent
  }

  /** Bytes of the jobs that hold some. */
  get heldBytes(): number {
    return this.#held
  }

  /**
   * Counts bytes for a job until it begins or ends. One job alone may have any number: max_request_size
   * bounds them. @throws ServeError QUEUE_FULL
   */
  hold(job: Budgeted, bytes: number): void {
    const others = this.#held - job.heldBytes + (bytes < LARGE_BYTES ? 0 : this.#unsent())
    if (others > 0 && others + job.heldBytes + bytes > this.#limit)
      throw queueFull(
        `The requests that wait for workers have too many bytes: ${this.#limit} may wait (max_waiting_input_bytes)`,
      )
    job.budget = this
    job.heldBytes += bytes
    this.#held += bytes
  }

  /** The worker has its input, or it ended. */
  release(job: Budgeted): void {
    this.#held -= job.heldBytes
    job.heldBytes = 0
  }
}

/** A sixteenth of the memory of the machine or of the cgroup, at least 256 MiB. */
export function defaultInputBudget(): number {
  return Math.max(LEAST_DEFAULT_BYTES, Math.floor(memoryBytes() / DEFAULT_SHARE))
}

export function inputBytes({ parts, headers }: Pick<JobRequest, 'parts' | 'headers'>): number {
  let bytes = headers.length
  for (const { data } of parts) bytes += data.byteLength
  return bytes
}
