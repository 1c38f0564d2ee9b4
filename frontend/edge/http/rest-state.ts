import type { ShownSetting } from '../../../common/server-events.ts'
import type { ServeError } from '../../../common/errors.ts'
import type { Authorizer } from '../../auth/authorizer.ts'
import type { Settings } from '../../config/settings.ts'
import type { RateLimiter } from '../../auth/rate-limiter.ts'
import type { JobIndex } from '../../jobs/open-jobs.ts'
import type { AuditLog } from '../../observe/logs/audit-log.ts'
import type { AccessLog } from '../../observe/logs/access-log.ts'
import type { Refusals } from '../../observe/metrics/refusals.ts'
import type { Tracing } from '../../observe/traces/tracing.ts'
import type { EventOperations } from '../../watch/viewers.ts'
import type { Operations } from '../permitted.ts'
import type { ClientAdmission } from '../admission/admission.ts'
import type { BareAnswer } from './bare-answer.ts'
import { Cors, type CorsSettings } from './cors.ts'
import type { HttpCall } from './http-call.ts'
import type { Refusal } from './http-reply.ts'
import type { ListenerKind } from './listener-kind.ts'
import { PageCheck, type PageSettings } from './page-check.ts'

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
  readonly cors: Cors
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
    cors: new Cors(deps.settings),
  }
}
