import { ServeError } from '../../common/errors.ts'
import { remember } from '../../common/maps.ts'
import { startTimer } from '../../common/timer.ts'
import {
  type Backlog,
  type BatchRule,
  isDescribe,
  type JobRunner,
  leastLoaded,
  type RunWatcher,
  type Scheduler,
} from './scheduler.ts'
import type { Job } from './job.ts'
import { type JobLimits, jobLimits, type JobTimeouts } from './time-limit.ts'
import { JobQueue } from './job-queue.ts'
import { Lanes, Sequence } from './lanes.ts'
import { queueFull } from './open-jobs.ts'
import type { ReplyHead } from './reply-sink.ts'
import {
  endedSequences,
  newSequenceId,
  readSequence,
  type SequenceHeaders,
  type SequenceRequest,
  withSequenceId,
  writeSequence,
} from './sequence-headers.ts'

export interface SequenceQueueOptions extends BatchRule {
  /** Maximum number of live sequences. */
  maxSequences: number
  /** Maximum number of waiting jobs per sequence. */
  maxWaiting: number
  /** A sequence without jobs ends after this many milliseconds. */
  maxIdleMs: number
  /** A sequence accepts no more jobs after this many milliseconds; 0: no limit. */
  maxLifeMs: number
  /**
   * Continuous batching: the next job may start when the previous one has begun to answer. Otherwise: when it
   * has ended.
   */
  overlap: boolean
  headers: SequenceHeaders
  timeouts: JobTimeouts
  /** For messages. */
  modelName: string
}

/**
 * Jobs of sequences, as in TorchServe's stateful inference (docs/batching.md). A sequence is bound to one
 * worker for its life, and at most one of its jobs is in a batch, so the order is kept. A job without an id
 * starts a new sequence, and its response contains the id.
 */
export class SequenceQueue implements Scheduler, RunWatcher {
  readonly #options: SequenceQueueOptions
  readonly #limits: JobLimits
  readonly #sequences = new Map<string, Sequence>()
  /** Jobs that wait or run. */
  readonly #sequenceOf = new Map<Job, Sequence>()
  /**
   * Sequences that ended with their worker before any of their requests failed. The next request is told so:
   * its client would take the answer of a new sequence for one of the old. By id and owner.
   */
  readonly #lost = new Map<string, Sequence>()
  readonly #lanes: Lanes
  readonly #describes: JobQueue
  #workers: readonly JobRunner[] = []

  constructor(options: SequenceQueueOptions) {
    const { timeouts, modelName, maxWaiting } = options
    this.#options = options
    this.#limits = jobLimits(timeouts)
    this.#lanes = new Lanes(options, this)
    this.#describes = new JobQueue({
      capacity: maxWaiting,
      batchSize: 1,
      maxBatchDelay: 0,
      timeouts,
      full: `Too many describe requests of model "${modelName}" wait: at most ${maxWaiting} may (maxSequenceJobQueueSize)`,
    })
  }

  get pending(): number {
    let count = this.#describes.pending
    for (const sequence of this.#sequences.values()) count += sequence.waiting.size
    return count
  }

  get remainingCapacity(): number {
    const { maxSequences, maxWaiting } = this.#options
    return maxSequences * maxWaiting - this.pending + this.#describes.pending
  }

  /** Jobs of a sequence that has begun wait for its worker alone. */
  backlog(): Backlog {
    const unbound = this.#lanes.unbound()
    const describes = this.#describes.backlog()
    const times = [unbound[0]?.next?.createdAt, describes.since].filter((time) => time !== undefined)
    return {
      jobs: unbound.length + describes.jobs,
      since: times.length === 0 ? undefined : Math.min(...times),
    }
  }

  isBound(worker: JobRunner): boolean {
    return this.#lanes.isBound(worker)
  }

  get openSequences(): number {
    return this.#sequences.size
  }

  hasSequence(id: string): boolean {
    const isLost = [...this.#lost.values()].some(
      (lost) => lost.id === id && lost.lostUntil > performance.now(),
    )
    return isLost || this.#sequences.has(id)
  }

  add(job: Job): void {
    if (isDescribe(job)) {
      this.#describes.add(job)
      return
    }
    const asked = readSequence(job.request.headers, this.#options.headers)
    const owner = job.request.sender?.identity
    this.#checkOwner(asked.id, owner)
    this.#checkLost(asked, owner)
    if (!this.#hasRoom(asked.id)) throw queueFull(this.#refusal(asked.id))
    const sequence = this.#sequence(asked.id ?? newSequenceId(), owner)
    if (asked.first) {
      sequence.first.add(job)
      this.#limitLife(sequence)
    }
    writeSequence(job.request, asked, sequence.id, this.#options.headers)
    clearTimeout(sequence.idleTimer)
    sequence.closing ||= asked.last
    sequence.waiting.add(job)
    this.#sequenceOf.set(job, sequence)
    job.queued(this, this.#limits)
    this.#lanes.arm(sequence)
    this.hand()
    if (sequence.waiting.has(job)) job.waits()
  }

  couldStart(job: Job): boolean {
    if (isDescribe(job)) return this.#describes.couldStart()
    const { id, first } = readSequence(job.request.headers, this.#options.headers)
    if (!this.#hasRoom(id)) return false
    const sequence = this.#open(id)
    const worker = sequence?.lane?.worker
    if (sequence === undefined || worker === undefined) return leastLoaded(this.#workers) !== undefined
    const mayFollow = first ? sequence.running.size === 0 : sequence.ahead === undefined
    return sequence.waiting.size === 0 && mayFollow && worker.freeSlots > 0
  }

  serve(workers: readonly JobRunner[]): void {
    this.#workers = workers
    this.#lanes.serve(workers)
    this.#describes.serve(workers)
  }

  hand(): void {
    this.#describes.hand()
    this.#lanes.hand()
  }

  /**
   * The state in the worker is lost, so its sequences end: another worker would answer their next jobs
   * wrongly.
   */
  workerLost(worker: JobRunner, error: ServeError): void {
    for (const sequence of this.#lanes.lose(worker)) {
      if (sequence.started) this.#end(sequence, error)
      else this.#lanes.arm(sequence)
    }
    this.hand()
  }

  answering(job: Job, headers: ReplyHead['headers']): ReplyHead['headers'] {
    const sequence = this.#sequenceOf.get(job)
    const owner = job.request.sender?.identity
    for (const id of endedSequences(headers, this.#options.headers)) this.#endedByHandler(id, owner)
    if (sequence === undefined) return headers
    if (this.#options.overlap && sequence.ahead === job) {
      sequence.ahead = undefined
      this.#lanes.arm(sequence)
      this.hand()
    }
    return withSequenceId(headers, sequence.id, this.#options.headers)
  }

  released(job: Job): void {
    const sequence = this.#sequenceOf.get(job)
    if (sequence === undefined) return
    this.#sequenceOf.delete(job)
    sequence.running.delete(job)
    if (job.outcome === 'failed') this.#forgetLost(sequence.id, sequence.owner)
    if (sequence.ahead === job) sequence.ahead = undefined
    this.#settle(sequence)
    this.hand()
  }

  abandon(job: Job): void {
    const sequence = this.#sequenceOf.get(job)
    if (sequence === undefined) return
    this.#forget(sequence, job)
    this.#settle(sequence)
  }

  failAll(error: ServeError): void {
    this.#describes.failAll(error)
    for (const sequence of [...this.#sequences.values()]) {
      this.#failWaiting(sequence, error)
      this.#settle(sequence)
    }
  }

  close(): void {
    this.#describes.close()
    this.#lanes.close()
    for (const sequence of this.#sequences.values()) sequence.stopTimers()
  }

  /** Handlers keep state by id, so whoever knows the id would read and change it. */
  #checkOwner(id: string | undefined, owner: string | undefined): void {
    const sequence = this.#open(id)
    if (sequence !== undefined && sequence.owner !== owner) throw ofAnother(sequence.id)
  }

  /** Its client begins a lost sequence anew, or is told. @throws ServeError NO_WORKER */
  #checkLost({ id, first }: SequenceRequest, owner: string | undefined): void {
    const lost = id === undefined ? undefined : this.#forgetLost(id, owner)
    if (lost === undefined || first || lost.lostUntil <= performance.now()) return
    throw new ServeError(
      'NO_WORKER',
      `The worker of sequence "${id}" of model "${this.#options.modelName}" has ended, and the state in it is lost. Begin the sequence again, with its first request.`,
    )
  }

  #forgetLost(id: string, owner: string | undefined): Sequence | undefined {
    if (this.#lost.size === 0) return undefined
    const key = keyOf(id, owner)
    const lost = this.#lost.get(key)
    this.#lost.delete(key)
    return lost
  }

  #open(id: string | undefined): Sequence | undefined {
    return id === undefined ? undefined : this.#sequences.get(id)
  }

  #hasRoom(id: string | undefined): boolean {
    const sequence = this.#open(id)
    if (sequence === undefined) return this.#sequences.size < this.#options.maxSequences
    return !sequence.closing && sequence.waiting.size < this.#options.maxWaiting
  }

  /** Why there is no room. */
  #refusal(id: string | undefined): string {
    const { modelName, maxSequences, maxWaiting } = this.#options
    const sequence = this.#open(id)
    if (sequence === undefined)
      return (
        `Model "${modelName}" has ${maxSequences} open sequences, the most that it may have. End one, retry later, ` +
        'or raise maxNumSequence in its model-config.yaml.'
      )
    if (sequence.closing)
      return `Sequence "${sequence.id}" of model "${modelName}" is closed or expired. Start a new one.`
    return (
      `The queue of sequence "${sequence.id}" of model "${modelName}" is full: ${maxWaiting} requests wait. Retry ` +
      'later, or raise maxSequenceJobQueueSize in its model-config.yaml.'
    )
  }

  #sequence(id: string, owner: string | undefined): Sequence {
    const known = this.#open(id)
    if (known !== undefined) return known
    const sequence = new Sequence(id, owner)
    this.#sequences.set(id, sequence)
    this.#limitLife(sequence)
    return sequence
  }

  /** From now on. */
  #limitLife(sequence: Sequence): void {
    const { maxLifeMs } = this.#options
    if (maxLifeMs === 0) return
    clearTimeout(sequence.lifeTimer)
    sequence.lifeTimer = startTimer(() => {
      sequence.closing = true
      this.#settle(sequence)
    }, maxLifeMs)
  }

  /** Called after a job has left: the sequence continues, waits for the next job, or ends. */
  #settle(sequence: Sequence): void {
    if (sequence.gone) return
    this.#lanes.arm(sequence)
    if (!sequence.isIdle) return
    clearTimeout(sequence.idleTimer)
    if (sequence.closing) this.#end(sequence)
    else sequence.idleTimer = startTimer(() => this.#end(sequence), this.#options.maxIdleMs)
  }

  /** A client may choose what the handler says, so it ends those of the same owner only. */
  #endedByHandler(id: string, owner: string | undefined): void {
    this.#forgetLost(id, owner)
    const sequence = this.#open(id)
    if (sequence === undefined || sequence.owner !== owner) return
    sequence.closing = true
    const error = new ServeError('NO_WORKER', `The handler ended the sequence ${id}`)
    this.#failWaiting(sequence, error)
    this.#settle(sequence)
  }

  /** Running jobs continue. A later job with the same id starts a new sequence, or is told of the loss. */
  #end(sequence: Sequence, error?: ServeError): void {
    sequence.gone = true
    sequence.stopTimers()
    this.#sequences.delete(sequence.id)
    this.#lanes.remove(sequence)
    if (error === undefined) return
    if (sequence.waiting.size === 0 && !sequence.closing) {
      sequence.lostUntil = performance.now() + this.#options.maxIdleMs
      remember(this.#lost, this.#options.maxSequences, keyOf(sequence.id, sequence.owner), sequence)
    }
    this.#failWaiting(sequence, error)
  }

  #failWaiting(sequence: Sequence, error: ServeError): void {
    for (const job of [...sequence.waiting]) {
      this.#forget(sequence, job)
      job.fail(error)
    }
  }

  /** A waiting job will not run. */
  #forget(sequence: Sequence, job: Job): void {
    this.#sequenceOf.delete(job)
    sequence.waiting.delete(job)
    if (sequence.next === undefined) this.#lanes.disarm(sequence)
  }
}

function keyOf(id: string, owner: string | undefined): string {
  return JSON.stringify([id, owner])
}

function ofAnother(id: string): ServeError {
  return new ServeError(
    'INVALID_ARGUMENT',
    `Sequence "${id}" was begun with another API key, token or certificate. Begin one with another id.`,
  )
}
