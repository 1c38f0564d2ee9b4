import type { ShownSetting } from '../../../common/server-events.ts'
import type { ServeError } from '../../../common/errors.ts'
import type { Authorizer } from '../../auth/gatekeeper.ts'
import type { Settings } from '../../config/settings.ts'
import type { RateLimiter } from '../../auth/rate-limiter.ts'
import type { JobIndex } from '../../jobs/open-jobs.ts'
import type { AuditLog } from '../../observe/logs/audit-log.ts'
import type { AccessLog } from '../../observe/logs/access-log.ts'
import type { Refusals } from '../../observe/metrics/refusals.ts'
import type { Tracing } from '../../observe/traces/tracing.ts'
import type { EventOperations } from '../../watch/viewers.ts'
import type { Operations } from '../call.ts'
import type { ClientAdmission } from '../admission/admission.ts'
import type { BareAnswer } from './bare-answer.ts'
import { Cors, type CorsSettings } from './cors.ts'
import { HttpCall } from './http-call.ts'
import type { Refusal } from './http-reply.ts'
import { type ListenerKind, PageCheck, type PageSettings } from './page-check.ts'
import type { RequestListener } from 'node:http'
import { connectionOf } from './connection.ts'
import { hasUnknownCoding } from './request-head.ts'
import type { SafeResponse } from './safe-response.ts'
import { MAX_HEAD_BYTES, type ServerRequest, skipBody } from './server-request.ts'

/** What the REST listeners need of the server. */
export interface RestDeps extends Operations {
  authorizer: Authorizer
  requests: Pick<JobIndex, 'cancel'>
  events: EventOperations
  /** The effective configuration, without secrets. */
  configuration: () => readonly ShownSetting[]
  metrics: RestMetrics
  settings: RestSettings
  log: RestLog
  /** Undefined if it is not written. */
  accessLog?: AccessLog
  /** Undefined if it is not written. */
  audit?: AuditLog
  /** Undefined if nothing is limited. */
  limiter?: RateLimiter
  /** Undefined if tracing is off. */
  tracing?: Tracing
  admission: ClientAdmission
}

interface RestMetrics {
  /** The Prometheus page; with names, only those samples. */
  page(names?: string[]): { contentType: string; body: Buffer }
  /** Counts one REST response. */
  response(status: number): void
  readonly refusals: Pick<Refusals, 'count'>
}

type RestSettings = Pick<
  Settings,
  | 'maxRequestSize'
  | 'maxRequestElements'
  | 'maxResponseSize'
  | 'openaiHeartbeatInterval'
  | 'enableModelApi'
  | 'enableConsole'
  | 'modelStore'
  | 'downloadTimeout'
  | 'minFreeDisk'
  | 'openInferenceProtocol'
  | 'openInferenceGzip'
  | 'metricsRequireToken'
> &
  CorsSettings &
  PageSettings

/** The part of a pino logger that is used here. */
export interface RestLog {
  error(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/** How a listener answers errors that belong to no API. */
export interface ListenerErrors {
  /** The answer to a request that failed before an API took it, or that no API takes. */
  refusal(call: HttpCall, error: ServeError): Refusal
  /** For bytes that are not an HTTP request; `late`: for a request that arrived too slowly. */
  malformed(late: boolean): BareAnswer
  /** For a connection that is one too many. */
  tooManyConnections(): BareAnswer
  /** For plain HTTP on a TLS port. */
  httpsOnly(): BareAnswer
}

/** The dependencies, and the state of one listener. */
export interface RestState extends Omit<RestDeps, keyof Operations> {
  /** All models and workflows; calls have those that their senders may use. */
  readonly operations: Operations
  readonly listener: ListenerKind
  readonly errors: ListenerErrors
  readonly pages: PageCheck
  /** The server stops: new requests are refused, and connections are not kept. */
  draining: boolean
  /** The log has said once that curl sends a form. */
  formExplained: boolean
  /** Names requests in traces; undefined: by their method alone. */
  readonly routes: Routes | undefined
  /** Undefined: no answer has headers for pages of other origins. */
  readonly cors: Cors | undefined
}

/** Finds the template of a path: `/models/{model_name}`. */
export interface Routes {
  of(segments: readonly string[]): string | undefined
}

export function createState(
  deps: RestDeps,
  listener: ListenerKind,
  errors: ListenerErrors,
  routes?: Routes,
): RestState {
  const { models, workflows, ...rest } = deps
  const pages = new PageCheck(listener, deps.settings)
  return {
    ...rest,
    operations: { models, workflows },
    listener,
    errors,
    pages,
    draining: false,
    formExplained: false,
    routes,
    cors: Cors.of(deps.settings),
  }
}

/** Handles a request of a REST listener. */
export type Listening = RequestListener<typeof ServerRequest, typeof SafeResponse>

/** An API over HTTP. What it throws, and what fails later, is answered by `refusal`. */
export interface HttpApi<Route = unknown> {
  /** What jobs call it. */
  readonly name: string
  /** Where the path leads, by path, method and listener alone; undefined: the path is not its own. */
  route(call: HttpCall): Route | undefined
  /**
   * Answers the call, now or later. False: the path is not its own after all, and nothing was done.
   * @throws ServeError
   */
  answer(call: HttpCall, route: Route): unknown
  /** A failure in its format: the one table from error code to status. Absent: the listener's format. */
  refusal?(call: HttpCall, error: ServeError): Refusal
}

/** What one listener serves. */
export interface RestApp {
  readonly listener: Listening
  /** For requests with an Expect header that is not known. */
  readonly expectation: Listening
  readonly state: RestState
  /** From now on new requests get 503, and connections are closed after their response. */
  beginDrain(): void
}

/** Offers a call to APIs in order. Returns false if no API has the path. @throws ServeError */
export function offer(call: HttpCall, apis: readonly HttpApi[]): boolean {
  for (const api of apis) {
    const route = api.route(call)
    if (route === undefined) continue
    const before = call.api
    call.api = api
    if (api.answer(call, route) !== false) return true
    call.api = before
  }
  return false
}

/** Offers each request to the APIs in order, and last to `otherwise`. */
export function createApp(
  state: RestState,
  apis: readonly HttpApi[],
  otherwise: (call: HttpCall) => void,
): RestApp {
  const arrive = (req: ServerRequest, res: SafeResponse): HttpCall | undefined => {
    const call = new HttpCall(state, req, res)
    if (mayGoOnSending(req)) res.once('prefinish', () => req.complete || skipBody(req))
    try {
      call.arrive()
      return call
    } catch (thrown) {
      call.api = apis.find((api) => api.route(call) !== undefined)
      call.fail(thrown)
      return undefined
    }
  }
  const answer = (call: HttpCall): void => {
    try {
      if (call.target.error !== undefined) {
        call.admit(state.listener === 'metrics' ? undefined : 'any')
        throw call.target.error
      }
      if (state.cors?.answered(call)) return
      if (!offer(call, apis)) otherwise(call)
    } catch (thrown) {
      call.fail(thrown)
    }
  }
  const take = (req: ServerRequest, res: SafeResponse): void => {
    const call = arrive(req, res)
    if (call === undefined) return
    if (hasUnknownCoding(req)) {
      call.answered(501)
      res.writeHead(501, { connection: 'close' }).end()
      return
    }
    const work = state.authorizer.prepare?.(req.headers.authorization, req.socket)
    if (work === undefined) answer(call)
    // Nothing of the body is read meanwhile.
    else void work.then(() => answer(call))
  }
  const refuse = (req: ServerRequest, res: SafeResponse): void => {
    if (arrive(req, res) === undefined) return
    res.writeHead(417, { connection: 'close' }).end()
  }
  return {
    listener: inTurn(take, state.admission),
    expectation: inTurn(refuse, state.admission),
    state,
    beginDrain: () => {
      state.draining = true
    },
  }
}

/**
 * Whether much of the body may come after the answer. Node itself would read the rest, whatever its pieces,
 * and tell nobody: its bytes would seem to belong to no request.
 */
function mayGoOnSending({ headers }: ServerRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > MAX_HEAD_BYTES
}

/** Handles a request at once, or when those before it on its connection have their answers. */
export function inTurn(handle: Listening, admission: ClientAdmission): Listening {
  return (req, res) => {
    // It has the socket from the start, unless others come first.
    if (res.socket !== null) handle(req, res)
    else connectionOf(req.socket).takeInTurn(res, admission, () => handle(req, res))
  }
}
