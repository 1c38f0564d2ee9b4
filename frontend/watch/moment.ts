import type {
  LoadingModel,
  LogEvent,
  ModelOverview,
  RequestsEvent,
  ServerEvents,
  ServerOverview,
} from '../../common/server-events.ts'
import type { Job } from '../jobs/job.ts'
import { oldestFirst } from './open-request.ts'
import { RequestsJson } from './requests-json.ts'

/** What is watched. Nothing of it is called while nobody watches. */
export interface WatchedServer {
  /** The server itself, without its requests. */
  overview(): Omit<ServerOverview, 'openRequests'>
  readonly models: { overviews(): ModelOverview[]; loading(): LoadingModel[] }
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
