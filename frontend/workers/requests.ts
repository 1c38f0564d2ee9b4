import { ServeError } from '../../common/errors.ts'
import type { TakeItem } from '../../protocol/channel.ts'
import type { CancelReason, FromWorker, PredictRequest } from '../../protocol/messages.ts'
import type { Job } from '../jobs/job.ts'
import type { BatchOwner, RunWatcher } from '../jobs/scheduler.ts'
import { BatchesAhead, giveBack } from './batches-ahead.ts'
import { handlerHeaders } from './handler-headers.ts'
import { Run, InFlight, type InFlightLink } from './in-flight.ts'
import { Patience } from './patience.ts'
import type { RequestsOptions } from './requests-options.ts'

/** The requests in flight of one start of one worker, matched with responses by number. */
export class Requests implements InFlightLink {
  readonly window: number
  readonly maxOwed: number
  readonly #options: RequestsOptions
  readonly #group: RequestsOptions['group']
  readonly #entries = new Map<number, InFlight>()
  readonly #ahead: BatchesAhead
  readonly #patience: Patience
  #lastId = 0
  #batches = 0
  #answered = false

  constructor(options: RequestsOptions) {
    this.window = options.window
    this.maxOwed = options.heedsCredit ? options.window : Infinity
    this.#options = options
    this.#group = options.group
    this.#patience = new Patience(options, () => options.shared && this.jobs().length > 0)
    this.#ahead = new BatchesAhead(options.batchesAhead, (ids) =>
      options.group.send({ type: 'withdraw', ids }),
    )
  }

  get batches(): number {
    return this.#batches
  }

  get size(): number {
    return this.#entries.size
  }

  /** Requests that have begun and not ended. */
  get running(): number {
    return this.#entries.size - this.#ahead.requests
  }

  /** Number of batches that may wait behind the running one besides those that do. */
  get room(): number {
    return this.#batches === 0 ? 0 : this.#ahead.room
  }

  /** The jobs that have not ended. */
  jobs(): Job[] {
    return [...this.#entries.values()].map(({ job }) => job).filter((job) => !job.ended)
  }

  /** @param now of performance.now(): the jobs begin */
  run(jobs: readonly Job[], watcher?: RunWatcher, now = performance.now()): void {
    const run = new Run(jobs, watcher)
    const requests = this.#enter(run)
    // Encoded at once, so that the inputs need not be kept.
    this.#group.send({ type: 'predict', requests })
    this.#begin(run, now)
    if (jobs.length === 1) this.#connectFeed(jobs[0]!, requests[0]!.id)
  }

  /** Sends a batch that begins when those before it have ended. Until then its jobs are queued. */
  runLater(jobs: readonly Job[], owner: BatchOwner): void {
    const run = new Run(jobs, undefined)
    this.#group.send({ type: 'predict', requests: this.#enter(run), after: true })
    this.#ahead.add(run, owner)
  }

  /** Wants back every batch that has not begun. */
  withdrawAll(): void {
    this.#ahead.withdrawAll()
  }

  /** Handles a response of a rank. Responses to ended requests are dropped. */
  receive(rank: number, message: FromWorker): void {
    switch (message.type) {
      case 'response': {
        const entry = rank === 0 ? this.#entries.get(message.id) : undefined
        this.#answered = true
        if (entry?.respond(message)) this.#finishedByFirst(entry, false)
        break
      }
      case 'failure': {
        const entry = rank === 0 ? this.#entries.get(message.id) : undefined
        if (entry === undefined) break
        this.#answered = true
        const error = ServeError.fromWire(message.error)
        if (!entry.job.ended) this.#options.onFailure(entry.job, error)
        entry.job.fail(this.#options.forClient(error))
        this.#finishedByFirst(entry, true)
        break
      }
      case 'withdrawn':
        if (rank === 0) this.#takeBack(message.ids)
        break
      case 'taken':
        if (rank === 0) this.#entries.get(message.id)?.job.request.feed?.taken(message.inputs)
        break
      case 'alive':
        if (rank === 0) this.#entries.get(message.id)?.job.alive()
        break
      case 'finished': {
        const entry = rank === 0 ? undefined : this.#entries.get(message.id)
        if (entry !== undefined) this.#finishedBy(entry)
      }
    }
  }

  /** Whether the worker has answered a request, or a part of one. */
  get answered(): boolean {
    return this.#answered
  }

  /** Takes the stream items of a rank. Only rank 0 sends; what another sends is dropped. */
  itemsOf(rank: number): TakeItem {
    return rank === 0 ? this.#takeItem : () => undefined
  }

  readonly #takeItem: TakeItem = (id, chunk, from, to, arrivedAt) => {
    this.#answered = true
    this.#entries.get(id)?.item(chunk, from, to, arrivedAt)
  }

  /** A request can no longer be answered; the handler continues until it reports the end. */
  broken(id: number, error: ServeError): void {
    const job = this.#entries.get(id)?.job
    if (job === undefined || job.ended) return
    this.#options.onFailure(job, error)
    job.abort(error, 'failed')
  }

  /** The worker is gone: all its requests fail. @returns the ids of those */
  failAll(error: ServeError): string[] {
    const waiting = this.#ahead.clear()
    for (const run of waiting) this.#forget(run)
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    this.#batches = 0
    giveBack(waiting)
    const failed = entries.filter(({ job }) => !job.ended).map(({ job }) => job.request.requestId)
    for (const entry of entries) {
      entry.run.stopTimers()
      entry.job.fail(error)
      entry.run.watcher?.released(entry.job)
    }
    return failed
  }

  withdraw(run: Run): void {
    this.#ahead.withdraw(run)
  }

  unexpected({ job }: InFlight): void {
    this.#options.onBreach(`request ${job.request.requestId} was answered before it began`)
  }

  cancel(entry: InFlight, reason: CancelReason): void {
    if (!this.#entries.has(entry.id)) return
    this.#group.send({ type: 'cancel', id: entry.id, reason })
    if (reason === 'timeout' && entry.job.startedAt !== undefined) this.#options.onTimeout(entry.job)
    // The handler continues for the others of the batch. It must stop only when every request is cancelled.
    if (entry.run.wanted || entry.run.owner !== undefined) return
    this.#patience.cancelled(entry.run, performance.now() - entry.job.lastSign)
  }

  discarded(run: Run): void {
    run.discarded += 1
    this.#options.onDiscarded()
  }

  overdrawn({ job }: InFlight): void {
    const { requestId, modelName } = job.request
    const beyond = `beyond its window of ${this.window} bytes without waiting for credit`
    const message = `The handler of ${modelName} sent items ${beyond}`
    const error = new ServeError('PROTOCOL', message)
    this.#options.onFailure(job, error)
    job.fail(error)
    this.#options.onBreach(`request ${requestId}: ${message}`)
  }

  input({ id }: InFlight, data: Uint8Array | undefined): void {
    if (!this.#entries.has(id)) return
    this.#group.send(data === undefined ? { type: 'input', id } : { type: 'input', id, data })
  }

  credit(id: number, bytes: number): void {
    this.#group.sendToFirst({ type: 'credit', id, bytes })
  }

  /** The other ranks do the same work, so they finish soon after the first, or hang. */
  #finishedByFirst(entry: InFlight, failed: boolean): void {
    this.#finishedBy(entry)
    if (entry.unfinishedRanks === 0) return
    if (failed) this.cancel(entry, 'failed')
    else this.#patience.finishing(entry.run)
  }

  /** Jobs with further inputs are never batched. */
  #connectFeed({ request: { feed } }: Job, id: number): void {
    const entry = feed && this.#entries.get(id)
    if (entry !== undefined) feed?.connect(entry)
  }

  #enter(run: Run): PredictRequest[] {
    const requests: PredictRequest[] = []
    for (const job of run.jobs) {
      const entry = new InFlight(this.#freeId(), job, run, this.#options.ranks, this)
      this.#entries.set(entry.id, entry)
      run.entries.push(entry)
      requests.push(wireRequest(entry.id, job, this.#options))
    }
    return requests
  }

  #begin(run: Run, now: number): void {
    this.#batches += 1
    this.#ahead.begin(now)
    for (const entry of run.entries) {
      if (!entry.job.ended) entry.job.started(entry, now)
      else this.cancel(entry, entry.job.outcome === 'timed_out' ? 'timeout' : 'client left')
    }
  }

  /** The worker gives batches back that it has not begun. */
  #takeBack(ids: readonly number[]): void {
    const runs = new Set<Run>()
    for (const id of ids) {
      const run = this.#entries.get(id)?.run
      if (run?.owner !== undefined) runs.add(run)
    }
    this.#ahead.remove(runs)
    for (const run of runs) this.#forget(run)
    giveBack([...runs])
  }

  #forget(run: Run): void {
    for (const { id } of run.entries) this.#entries.delete(id)
  }

  /** Numbers restart after 2^32 requests. */
  #freeId(): number {
    do this.#lastId = (this.#lastId + 1) >>> 0
    while (this.#entries.has(this.#lastId))
    return this.#lastId
  }

  #finishedBy(entry: InFlight): void {
    entry.unfinishedRanks -= 1
    if (entry.unfinishedRanks > 0) return
    const { run } = entry
    this.#entries.delete(entry.id)
    run.unfinished -= 1
    if (run.unfinished === 0) {
      run.stopTimers()
      this.#batches -= 1
      const now = performance.now()
      const next = this.#ahead.end(now)
      if (next !== undefined) this.#begin(next, now)
    }
    run.watcher?.released(entry.job)
    if (run.unfinished === 0) this.#options.onFree()
  }
}

function wireRequest(id: number, job: Job, { window, credentialHeaders }: RequestsOptions): PredictRequest {
  const { requestId, method, parts, deadline, feed } = job.request
  const headers = handlerHeaders(job.request, credentialHeaders)
  if (feed !== undefined) return { method, id, requestId, headers, parts, window, deadline, moreInputs: true }
  return deadline === undefined
    ? { method, id, requestId, headers, parts, window }
    : { method, id, requestId, headers, parts, window, deadline }
}
