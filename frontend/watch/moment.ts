import type {
  LoadingModel,
  LogEvent,
  ModelOverview,
  OverviewEvent,
  RequestsEvent,
  ServerEvents,
  ServerOverview,
} from '../../common/server-events.ts'
import { type Principal, seesAll } from '../auth/principal.ts'
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

/**
 * The events of one moment, as bytes. What is in them is made once for all viewers that see the same: those
 * who see all models are one, every other viewer is one with its key.
 */
export class Moment {
  readonly #watched: WatchedServer
  readonly #overviews = new Map<Principal | undefined, Buffer>()
  readonly #requests = new Map<Principal | undefined, RequestsJson>()
  readonly #logs = new Map<number, Buffer>()
  readonly #now = performance.now()
  readonly #at = new Date().toISOString()
  #models: ModelOverview[] | undefined
  #loading: LoadingModel[] | undefined
  #jobs: Job[] | undefined

  constructor(watched: WatchedServer) {
    this.#watched = watched
  }

  overview(viewer: Principal): Buffer {
    return made(this.#overviews, viewOf(viewer), () => frame('overview', this.#overviewFor(viewer)))
  }

  /** `limit`: how many requests at most. */
  requests(viewer: Principal, limit: number): Buffer {
    const json = made(
      this.#requests,
      viewOf(viewer),
      () => new RequestsJson(this.#jobsFor(viewer), this.#now),
    )
    const event: RequestsEvent = { at: this.#at, total: json.total, requests: [] }
    const [head, tail] = frameText('requests', event).split(NO_REQUESTS) as [string, string]
    return Buffer.concat([Buffer.from(`${head}"requests":[`), json.first(limit), Buffer.from(`]${tail}`)])
  }

  /** Lines after the first `count`; undefined: there are none. */
  log(count: number): Buffer | undefined {
    const { logTail } = this.#watched
    if (logTail === undefined || logTail.written === count) return undefined
    return made(this.#logs, count, () => frame('log', logTail.after(count)))
  }

  #overviewFor(viewer: Principal): OverviewEvent {
    const { models } = this.#watched
    this.#models ??= models.overviews()
    this.#loading ??= models.loading()
    const all = seesAll(viewer)
    return {
      at: this.#at,
      server: { ...this.#watched.overview(), openRequests: this.#jobsFor(viewer).length },
      models: all ? this.#models : this.#models.filter(({ modelName }) => viewer.sees(modelName)),
      loading: this.#loading.filter(
        ({ modelName }) => all || (modelName !== undefined && viewer.sees(modelName)),
      ),
    }
  }

  #jobsFor(viewer: Principal): Job[] {
    this.#jobs ??= oldestFirst(this.#watched.jobs)
    return seesAll(viewer) ? this.#jobs : this.#jobs.filter(({ request }) => viewer.sees(request.modelName))
  }
}

function viewOf(viewer: Principal): Principal | undefined {
  return seesAll(viewer) ? undefined : viewer
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

function made<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  let value = map.get(key)
  if (value === undefined) map.set(key, (value = make()))
  return value
}
