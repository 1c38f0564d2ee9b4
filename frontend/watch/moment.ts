import { unmapped } from '../../common/addresses.ts'
import type {
  FailedOverview,
  LoadingModel,
  LogEvent,
  ModelOverview,
  OpenRequest,
  RequestsEvent,
  ServerEvents,
  ServerOverview,
} from '../../common/server-events.ts'
import type { Job } from '../jobs/job.ts'

/** Open jobs in the order in which watchers see them. */
export function oldestFirst(jobs: Iterable<Job>): Job[] {
  return [...jobs].sort((a, b) => a.createdAt - b.createdAt)
}

/** What an open job is doing. `now`: a performance.now(). */
export function openRequest(job: Job, now: number): OpenRequest {
  const { request, firstResponseAt, createdAt, lastGap } = job
  const { sender } = request
  return {
    id: request.requestId,
    modelName: request.modelName,
    modelVersion: job.version,
    api: request.dialect ?? 'server',
    client: sender === undefined ? 'server' : unmapped(sender.address),
    key: sender?.keyName,
    ageMs: Math.round(now - createdAt),
    streaming: job.streaming,
    items: job.items,
    bytes: job.bytes,
    firstResponseMs: firstResponseAt === undefined ? undefined : rounded(firstResponseAt - createdAt),
    lastGapMs: lastGap === undefined ? undefined : rounded(lastGap),
    waitsFor: waitsFor(job),
  }
}

function waitsFor({ startedAt, isHeldBack }: Job): OpenRequest['waitsFor'] {
  if (startedAt === undefined) return 'worker'
  return isHeldBack ? 'client' : 'handler'
}

/** Microseconds are enough. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

/**
 * The open requests of one view as JSON. Each is written once, however many of them each viewer wants:
 * thousands of requests, in as many lengths as there are viewers, would take the server's thread for long.
 */
export class RequestsJson {
  readonly #jobs: readonly Job[]
  readonly #now: number
  /** Items with commas between them. */
  #bytes = Buffer.alloc(0)
  /** Where each item ends. */
  readonly #ends: number[] = []

  /** `now`: a performance.now(). */
  constructor(jobs: readonly Job[], now: number) {
    this.#jobs = jobs
    this.#now = now
  }

  get total(): number {
    return this.#jobs.length
  }

  /** The first items of the list, without its brackets. */
  first(limit: number): Buffer {
    const count = Math.min(limit, this.#jobs.length)
    if (count > this.#ends.length) this.#write(count)
    return this.#bytes.subarray(0, count === 0 ? 0 : this.#ends[count - 1])
  }

  #write(count: number): void {
    const pieces = [this.#bytes]
    let end = this.#bytes.length
    for (const job of this.#jobs.slice(this.#ends.length, count)) {
      const json = JSON.stringify(openRequest(job, this.#now))
      const piece = Buffer.from(end === 0 ? json : `,${json}`)
      pieces.push(piece)
      this.#ends.push((end += piece.length))
    }
    this.#bytes = Buffer.concat(pieces)
  }
}

/** What is watched. Nothing of it is called while nobody watches. */
export interface WatchedServer {
  /** The server itself, without its requests. */
  overview(): Omit<ServerOverview, 'openRequests'>
  readonly models: {
    overviews(): ModelOverview[]
    failedOverviews(): FailedOverview[]
    loading(): LoadingModel[]
  }
  /** The open jobs. */
  readonly jobs: Iterable<Job>
  /** Absent: the log is kept by somebody else. */
  readonly logTail?: LogSource | undefined
}

export interface LogSource {
  /** Lines so far. */
  readonly written: number
  /** Those after the first `count`, as far as they are kept. */
  after(count: number): LogEvent
}

/** The events of one moment, as bytes. What is in them is made once for all viewers. */
export class Moment {
  readonly #watched: WatchedServer
  readonly #logs = new Map<number, Buffer>()
  readonly #now = performance.now()
  readonly #at = new Date().toISOString()
  #overview: Buffer | undefined
  #requests: RequestsJson | undefined
  #jobs: Job[] | undefined

  constructor(watched: WatchedServer) {
    this.#watched = watched
  }

  overview(): Buffer {
    return (this.#overview ??= this.#makeOverview())
  }

  /** `limit`: how many requests at most. */
  requests(limit: number): Buffer {
    const json = (this.#requests ??= new RequestsJson(this.#openJobs(), this.#now))
    const event: RequestsEvent = { at: this.#at, total: json.total, requests: [] }
    const [head, tail] = frameText('requests', event).split(NO_REQUESTS) as [string, string]
    return Buffer.concat([Buffer.from(`${head}"requests":[`), json.first(limit), Buffer.from(`]${tail}`)])
  }

  /** Lines after the first `count`; undefined: there are none. */
  log(count: number): Buffer | undefined {
    const { logTail } = this.#watched
    if (logTail === undefined || logTail.written === count) return undefined
    let event = this.#logs.get(count)
    if (event === undefined) this.#logs.set(count, (event = frame('log', logTail.after(count))))
    return event
  }

  #makeOverview(): Buffer {
    const { models } = this.#watched
    return frame('overview', {
      at: this.#at,
      server: { ...this.#watched.overview(), openRequests: this.#openJobs().length },
      models: models.overviews(),
      failed: models.failedOverviews(),
      loading: models.loading(),
    })
  }

  #openJobs(): Job[] {
    return (this.#jobs ??= oldestFirst(this.#watched.jobs))
  }
}

/** Where the requests go into the event. */
const NO_REQUESTS = '"requests":[]'

function frame<Topic extends keyof ServerEvents>(topic: Topic, event: ServerEvents[Topic]): Buffer {
  return Buffer.from(frameText(topic, event))
}

/** JSON has no line ends, so one `data` line is enough. */
function frameText<Topic extends keyof ServerEvents>(topic: Topic, event: ServerEvents[Topic]): string {
  return `event: ${topic}\ndata: ${JSON.stringify(event)}\n\n`
}
