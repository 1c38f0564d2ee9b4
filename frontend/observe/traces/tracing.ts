import type { ErrorCode } from '../../../common/errors.ts'
import type { PageFamily } from '../metrics/page.ts'
import type { Outcome } from '../metrics/tally.ts'

/**
 * Attributes of a span: names and values in turns, because an object of each shape would cost a multiple. The
 * names are those of OpenTelemetry's semantic conventions, or `torchserve_ts.*` where it has none. Undefined
 * values are left out.
 */
export type SpanAttributes = readonly (SpanAttribute | undefined)[]

export type SpanAttribute = string | number | boolean | string[]

/** The headers of a request, in whatever form its protocol has them. */
export interface HeaderCarrier {
  /** The value of a header, by its name in lower case. */
  get(name: string): string | undefined
  /** Removes all headers of this name, which is in lower case. */
  delete(name: string): void
}

/** The span of a client's request. */
export interface RequestSpan {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** The context of the span for the client, as `traceparent` of W3C Trace Context has it. */
  readonly traceparent: string
  /** Whether it is sampled. Attributes that cost something need not be made otherwise. */
  readonly recording: boolean
  /** Whether others can find the trace by its id: it is recorded, or the client named it. */
  readonly known: boolean
  set(attributes: SpanAttributes): void
  /** Names it by its method and the template of its path, once that is known. */
  rename(method: string, route: string): void
  /** `failed`: by the fault of the server or its handler. Call it once. */
  end(failed: boolean): void
  /** Begins the span of a job that the request made. The handler's headers name it from now on. */
  job(job: TracedJob, model: TracedModel): JobSpan
}

/**
 * The id of a request's trace for the line of its answer in the log. Undefined: it would lead nowhere, and a
 * log of ids grows faster and is compressed badly.
 */
export function loggedTraceId(span: RequestSpan | undefined, failed: boolean): string | undefined {
  return span !== undefined && (failed || span.known) ? span.traceId : undefined
}

/** The model that a job is for. */
export interface TracedModel {
  readonly name: string
  readonly version: string
}

/** What spans need to know of a job. Times are performance.now() milliseconds. */
export interface TracedJob {
  readonly request: { headers: string; readonly requestId: string; readonly method: string }
  readonly createdAt: number
  readonly startedAt: number | undefined
  readonly firstResponseAt: number | undefined
  readonly outcome: Outcome | undefined
  readonly errorCode: ErrorCode | undefined
  readonly streaming: boolean
}

/** The span of a job. */
export interface JobSpan {
  /** The job has ended. */
  end(job: TracedJob): void
  /** The queue did not take the job. */
  refused(code: ErrorCode): void
}

/** Makes spans, where tracing is on. */
export interface Tracing {
  /**
   * Begins the span of a client's request, below the one that its headers name; they name none afterwards.
   * Undefined: spans go nowhere.
   */
  request(name: string, headers: HeaderCarrier): RequestSpan | undefined
  /** Begins the span of a job that no client asked for. The handler's headers name it from now on. */
  job(job: TracedJob, model: TracedModel): JobSpan
  /** What the metrics page shows is exported too, if the variables say where to. */
  exportMetrics(families: Iterable<PageFamily>): void
  /** Exports what it has. Resolves when that is done, or after a few seconds. */
  close(): Promise<void>
}
