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
  /** The oldest requests as JSON. */
  readonly #described: string[] = []
  #jobs: Job[] | undefined

  constructor(watched: WatchedServer) {
    this.#watched = watched
  }

  overview(): Buffer {
    return (this.#overview ??= this.#makeOverview())
  }

  /** `limit`: how many requests at most. Each is described once, however many of them each viewer wants. */
  requests(limit: number): Buffer {
    const jobs = this.#openJobs()
    const count = Math.min(limit, jobs.length)
    for (const job of jobs.slice(this.#described.length, count))
      this.#described.push(JSON.stringify(openRequest(job, this.#now)))
    const event: RequestsEvent = { at: this.#at, total: jobs.length, requests: [] }
    const items = this.#described.slice(0, count).join(',')
    return Buffer.from(frameText('requests', event).replace(NO_REQUESTS, () => `"requests":[${items}]`))
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
