import type { JobSpan, RequestSpan, TracedJob } from './tracing.ts'

/** Of a job that is not recorded. */
export const NO_JOB_SPAN: JobSpan = { end: () => undefined, refused: () => undefined }

/**
 * The context of a request that is not recorded. The handler gets it all the same: without it, its own
 * sampler would begin a trace, and decide again.
 */
export class UnsampledSpan implements RequestSpan {
  readonly recording = false
  readonly known: boolean
  readonly traceparent: string
  readonly #lines: string

  /**
   * @param lines headers of the context, in the format of common/headers.ts
   * @param known whether the client named the trace
   */
  constructor(traceparent: string, lines: string, known: boolean) {
    this.traceparent = traceparent
    this.#lines = lines
    this.known = known
  }

  get traceId(): string {
    return this.traceparent.slice(3, 35)
  }

  job({ request }: TracedJob): JobSpan {
    request.headers += this.#lines
    return NO_JOB_SPAN
  }

  set(): void {
    // Nobody sees it.
  }

  rename(): void {
    // Nobody sees it.
  }

  end(): void {
    // Nobody sees it.
  }
}
