import { PassingMap } from '../../common/maps.ts'
import { ServeError } from '../../common/errors.ts'
import type { TakeItem } from '../../protocol/channel.ts'
import type { CancelReason, FromWorker, PredictRequest } from '../../protocol/messages.ts'
import type { Job } from '../jobs/job.ts'
import type { BatchOwner, RunWatcher } from '../jobs/scheduler.ts'
import type { ModelSettings } from '../models/model-settings.ts'
import { BatchesAhead, giveBack } from './batches-ahead.ts'
import { Batch, type HangLimits, InFlight } from './in-flight.ts'
import type { WorkerGroup } from './worker-group.ts'

/** The worker that has the requests. */
export interface RequestsOwner {
  /** A batch has finished, so its slot is free. */
  onFree(): void
  /** The handler failed a request that was not cancelled. */
  onFailure(job: Job, error: ServeError): void
  /** What its client gets of an error that the worker sent. */
  forClient(error: ServeError): ServeError
  /** A time limit ended a job that the handler has. */
  onTimeout(job: Job): void
  /** A response was dropped because its request had ended. */
  onDiscarded(): void
  /** The worker hangs or violated the protocol: nothing more of it can be trusted. */
  kill(why: string): void
}

export type RequestSettings = Pick<
  ModelSettings,
  | 'streamWindowSize'
  | 'credentialHeaders'
  | 'batchesAhead'
  | 'cancelGraceMs'
  | 'responseTimeout'
  | 'continuousBatching'
  | 'maxConcurrency'
>

type RequestGroup = Pick<
  WorkerGroup,
  'send' | 'sendToFirst' | 'finishingRanks' | 'isNative' | 'takesBatchesAhead'
>

/** The requests in flight of one start of one worker, matched with responses by number. */
export class Requests {
  /** Window per stream in bytes. */
  readonly window: number
  /** Whether the worker waits for credit. */
  readonly knowsCredit: boolean
  readonly #credentialHeaders: ReadonlySet<string>
  readonly #group: RequestGroup
  readonly #owner: RequestsOwner
  readonly #entries = new PassingMap<number, InFlight>()
  readonly #ahead: BatchesAhead
  readonly #hang: HangLimits
  #lastId = 0
  #batches = 0
  #answered = false

  constructor(settings: RequestSettings, group: RequestGroup, owner: RequestsOwner) {
    const { isNative } = group
    const responseMs = settings.responseTimeout * 1000
    // Requests that share the handler's steps or its event loop: a cancelled one may have to wait for others.
    const shared = settings.continuousBatching || (!isNative && settings.maxConcurrency > 1)
    this.window = settings.streamWindowSize
    this.knowsCredit = isNative
    this.#credentialHeaders = settings.credentialHeaders
    this.#group = group
    this.#owner = owner
    this.#hang = {
      cancelGraceMs: settings.cancelGraceMs,
      silenceMs: isNative ? undefined : responseMs,
      rankLagMs: responseMs,
      harmsOthers: () => shared && this.jobs().length > 0,
      onHung: (why) => owner.kill(why),
    }
    this.#ahead = new BatchesAhead(group.takesBatchesAhead ? settings.batchesAhead : 0, (ids) =>
      group.send({ type: 'withdraw', ids }),
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
    const batch = new Batch(jobs, watcher)
    const requests = this.#enter(batch)
    // Encoded at once, so that the inputs need not be kept.
    this.#group.send({ type: 'predict', requests })
    this.#begin(batch, now)
    if (jobs.length === 1) this.#connectFeed(jobs[0]!, requests[0]!.id)
  }

  /** Sends a batch that begins when those before it have ended. Until then its jobs are queued. */
  runLater(jobs: readonly Job[], owner: BatchOwner): void {
    const batch = new Batch(jobs, undefined, owner)
    this.#group.send({ type: 'predict', requests: this.#enter(batch), after: true })
    this.#ahead.add(batch)
  }

  /** Asks the worker for batches that have not begun. Default: all. */
  withdraw(batches?: readonly Batch[]): void {
    this.#ahead.withdraw(batches)
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
        if (!entry.job.ended) this.#owner.onFailure(entry.job, error)
        entry.job.fail(this.#owner.forClient(error))
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
    this.#owner.onFailure(job, error)
    job.abort(error, 'failed')
  }

  /** The worker is gone: all its requests fail. @returns the ids of those */
  failAll(error: ServeError): string[] {
    const waiting = this.#ahead.clear()
    for (const batch of waiting) this.#forget(batch)
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    this.#batches = 0
    giveBack(waiting)
    const failed = entries.filter(({ job }) => !job.ended).map(({ job }) => job.request.requestId)
    for (const entry of entries) {
      entry.batch.stopTimers()
      entry.job.fail(error)
      entry.batch.watcher?.released(entry.job)
    }
    return failed
  }

  /** A response arrived for a batch that has not begun. */
  unexpected({ job }: InFlight): void {
    this.#owner.kill(`request ${job.request.requestId} was answered before it began`)
  }

  cancel(entry: InFlight, reason: CancelReason): void {
    if (!this.#entries.has(entry.id)) return
    this.#group.send({ type: 'cancel', id: entry.id, reason })
    if (reason === 'timeout' && entry.job.startedAt !== undefined) this.#owner.onTimeout(entry.job)
    // The handler continues for the others of the batch. It must stop only when every request is cancelled.
    if (entry.batch.wanted || !entry.batch.begun) return
    entry.batch.cancelled(this.#hang, performance.now() - entry.job.lastSign)
  }

  /** A response arrived for a job that has ended. */
  discarded(batch: Batch): void {
    batch.discarded += 1
    this.#owner.onDiscarded()
  }

  /** An item arrived although the window was used up: the worker does not wait for credit. */
  overdrawn({ job }: InFlight): void {
    const { requestId, modelName } = job.request
    const beyond = `beyond its window of ${this.window} bytes without waiting for credit`
    const message = `The handler of ${modelName} sent items ${beyond}`
    const error = new ServeError('PROTOCOL', message)
    this.#owner.onFailure(job, error)
    job.fail(error)
    this.#owner.kill(`request ${requestId}: ${message}`)
  }

  input({ id }: InFlight, data: Uint8Array | undefined): void {
    if (!this.#entries.has(id)) return
    this.#group.send(data === undefined ? { type: 'input', id } : { type: 'input', id, data })
  }

  credit(id: number, bytes: number): void {
    this.#group.sendToFirst({ type: 'credit', id, bytes })
  }

  #finishedByFirst(entry: InFlight, failed: boolean): void {
    this.#finishedBy(entry)
    if (entry.unfinishedRanks === 0) return
    if (failed) this.cancel(entry, 'failed')
    else entry.batch.finishing(this.#hang)
  }

  /** Jobs with further inputs are never batched. */
  #connectFeed({ request: { feed } }: Job, id: number): void {
    const entry = feed && this.#entries.get(id)
    if (entry !== undefined) feed?.connect(entry)
  }

  #enter(batch: Batch): PredictRequest[] {
    const requests: PredictRequest[] = []
    for (const job of batch.jobs) {
      const entry = new InFlight(this.#freeId(), job, batch, this.#group.finishingRanks, this)
      this.#entries.set(entry.id, entry)
      batch.entries.push(entry)
      requests.push(entry.message(this.#credentialHeaders))
    }
    return requests
  }

  #begin(batch: Batch, now: number): void {
    this.#batches += 1
    this.#ahead.begin(now)
    batch.begun = true
    batch.owner?.began(batch.jobs)
    for (const entry of batch.entries) {
      if (!entry.job.ended) entry.job.started(entry, now)
      else this.cancel(entry, entry.job.outcome === 'timed_out' ? 'timeout' : 'client left')
    }
  }

  /** The worker gives batches back that it has not begun. */
  #takeBack(ids: readonly number[]): void {
    const returned = new Set<Batch>()
    for (const id of ids) {
      const batch = this.#entries.get(id)?.batch
      if (batch?.begun === false) returned.add(batch)
    }
    this.#ahead.remove(returned)
    for (const batch of returned) this.#forget(batch)
    giveBack([...returned])
  }

  #forget(batch: Batch): void {
    for (const { id } of batch.entries) this.#entries.delete(id)
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
    const { batch } = entry
    this.#entries.delete(entry.id)
    batch.unfinished -= 1
    if (batch.unfinished === 0) {
      batch.stopTimers()
      this.#batches -= 1
      const now = performance.now()
      const next = this.#ahead.end(now)
      if (next !== undefined) this.#begin(next, now)
    }
    batch.watcher?.released(entry.job)
    if (batch.unfinished === 0) this.#owner.onFree()
  }
}
