import { ServeError } from '../../protocol/errors.ts'
import type {
  CancelReason,
  FromWorker,
  PredictMessage,
  PredictRequest,
  ToWorker,
} from '../../protocol/messages.ts'
import type { Job } from '../models/job.ts'
import type { RunWatcher } from '../models/scheduler.ts'
import { Batch, InFlight, type InFlightLink } from './in-flight.ts'

/** What the requests of a worker need of it. */
export interface RequestsOptions {
  window: number
  /** Milliseconds that a cancelled request may go on. */
  cancelGraceMs: number
  /** Milliseconds that the other ranks may take after rank 0 has answered. */
  rankLagMs: number
  /** Ranks that get every request and have to finish it. */
  ranks: number
  /** Continuous batching: all requests of the worker share the handler's steps. */
  sharedSteps: boolean
  send(message: PredictMessage | Extract<ToWorker, { type: 'cancel' | 'input' }>): void
  sendToFirst(message: ToWorker): void
  /** A batch has finished: its slot is free. */
  onFree(): void
  /** The handler failed a request that somebody waits for. */
  onFailure(job: Job, error: ServeError): void
  /** Work that nobody waits for went on for longer than that. */
  onDeaf(ms: number): void
}

/** The unfinished requests of one start of one worker, matched with its answers by their number. */
export class Requests implements InFlightLink {
  readonly window: number
  readonly #options: RequestsOptions
  readonly #entries = new Map<number, InFlight>()
  #lastId = 0
  #batches = 0

  constructor(options: RequestsOptions) {
    this.window = options.window
    this.#options = options
  }

  get batches(): number {
    return this.#batches
  }

  get size(): number {
    return this.#entries.size
  }

  /** Those that have not ended. */
  jobs(): Job[] {
    return [...this.#entries.values()].map((entry) => entry.job).filter((job) => !job.ended)
  }

  run(jobs: readonly Job[], watcher?: RunWatcher): void {
    const batch = new Batch(jobs, watcher)
    const requests: PredictRequest[] = []
    for (const job of jobs) {
      const entry = new InFlight(this.#freeId(), job, batch, this.#options.ranks, this)
      this.#entries.set(entry.id, entry)
      requests.push(wireRequest(entry.id, job, this.window))
      job.started(entry)
    }
    this.#batches += 1
    // Encoded here and now, so that nothing of the inputs has to be kept.
    this.#options.send({ type: 'predict', action: jobs[0]?.request.action ?? 'predict', requests })
    if (jobs.length === 1) this.#connectFeed(jobs[0]!, requests[0]!.id)
  }

  /** An answer from a rank; what comes for a request that has ended is dropped. */
  receive(rank: number, message: FromWorker): void {
    switch (message.type) {
      case 'response': {
        const entry = rank === 0 ? this.#entries.get(message.id) : undefined
        if (entry?.respond(message)) this.#finishedByFirst(entry, false)
        break
      }
      case 'failure': {
        const entry = rank === 0 ? this.#entries.get(message.id) : undefined
        if (entry === undefined) break
        const error = ServeError.fromWire(message.error)
        if (!entry.job.ended) this.#options.onFailure(entry.job, error)
        entry.job.fail(error)
        this.#finishedByFirst(entry, true)
        break
      }
      case 'taken':
        if (rank === 0) this.#entries.get(message.id)?.job.request.feed?.taken(message.inputs)
        break
      case 'finished':
        for (const id of message.ids) {
          const entry = rank === 0 ? undefined : this.#entries.get(id)
          if (entry !== undefined) this.#finishedBy(entry)
        }
    }
  }

  /** An item of a stream from a rank: bytes from..to of a chunk. */
  receiveItem(rank: number, id: number, chunk: Buffer, from: number, to: number): void {
    if (rank === 0) this.#entries.get(id)?.item(chunk, from, to)
  }

  /** The worker is gone: everything that it had fails. */
  failAll(error: ServeError): void {
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    this.#batches = 0
    for (const entry of entries) {
      clearTimeout(entry.batch.graceTimer)
      entry.job.fail(error)
      entry.batch.watcher?.released(entry.job)
    }
  }

  cancel(entry: InFlight, reason: CancelReason): void {
    if (!this.#entries.has(entry.id)) return
    this.#options.send({ type: 'cancel', ids: [entry.id], reason })
    // The handler goes on for the others of the batch; only when it works for nobody has it to stop.
    if (!entry.batch.wanted) this.#expectEnd(entry.batch, this.#options.cancelGraceMs)
  }

  input({ id }: InFlight, data: Uint8Array | undefined, last: boolean): void {
    if (!this.#entries.has(id)) return
    this.#options.send(data === undefined ? { type: 'input', id, last } : { type: 'input', id, data, last })
  }

  credit(id: number, bytes: number): void {
    this.#options.sendToFirst({ type: 'credit', id, bytes })
  }

  /** The other ranks have the same work to do, so they end soon after the first, or hang. */
  #finishedByFirst(entry: InFlight, failed: boolean): void {
    this.#finishedBy(entry)
    if (entry.unfinishedRanks === 0) return
    if (failed) this.cancel(entry, 'failed')
    else this.#expectEnd(entry.batch, this.#options.rankLagMs)
  }

  /** Jobs with further inputs go alone. */
  #connectFeed({ request: { feed } }: Job, id: number): void {
    const entry = feed && this.#entries.get(id)
    if (entry !== undefined) feed?.connect(entry)
  }

  /** Numbers start again after 2^32 requests. */
  #freeId(): number {
    do this.#lastId = (this.#lastId + 1) >>> 0
    while (this.#entries.has(this.#lastId))
    return this.#lastId
  }

  /** A step that others wait for may be long; who was cancelled leaves after it. */
  #expectEnd(batch: Batch, withinMs: number): void {
    batch.graceTimer ??= setTimeout(() => {
      batch.graceTimer = undefined
      if (this.#options.sharedSteps && this.jobs().length > 0) this.#expectEnd(batch, withinMs)
      else this.#options.onDeaf(withinMs)
    }, withinMs)
  }

  #finishedBy(entry: InFlight): void {
    entry.unfinishedRanks -= 1
    if (entry.unfinishedRanks > 0) return
    const { batch } = entry
    this.#entries.delete(entry.id)
    batch.unfinished -= 1
    if (batch.unfinished === 0) {
      clearTimeout(batch.graceTimer)
      this.#batches -= 1
    }
    batch.watcher?.released(entry.job)
    if (batch.unfinished === 0) this.#options.onFree()
  }
}

function wireRequest(id: number, job: Job, window: number): PredictRequest {
  const { requestId, headers, parts, deadline, feed } = job.request
  if (feed !== undefined) return { id, requestId, headers, parts, window, deadline, moreInputs: true }
  return deadline === undefined
    ? { id, requestId, headers, parts, window }
    : { id, requestId, headers, parts, window, deadline }
}
