import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
} from 'node:http'
import type { RequestSpan } from '../../observe/traces/tracing.ts'

/** Keeps browsers from taking an answer for anything but its content type. */
export const NO_SNIFF = ['x-content-type-options', 'nosniff'] as const

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]

/**
 * Every response of the REST listeners. Headers of all answers are added here, and not where heads are made,
 * so that Koa's answers, and those that Node writes by itself, have them too.
 */
export class SafeResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Undefined: the request is not traced. It ends with the response. */
  span: Pick<RequestSpan, 'traceparent' | 'recording' | 'set' | 'end'> | undefined = undefined

  /** The span ends here, because a listener of its own would cost as much as half of what it records. */
  override emit(name: string | symbol, ...args: unknown[]): boolean {
    if (name === 'close' && this.span?.recording === true) this.#end(this.span)
    return super.emit(name, ...args)
  }

  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    const given = headers ?? reason
    this.#add(given, NO_SNIFF[0], NO_SNIFF[1])
    const { span } = this
    // Of a request that is not recorded there is no trace to find, but an error has its id in the logs.
    if (span !== undefined && (span.recording || status >= 400))
      this.#add(given, 'traceresponse', span.traceparent)
    return super.writeHead(status, reason as string, headers)
  }

  #end(span: Pick<RequestSpan, 'set' | 'end'>): void {
    const { statusCode, headersSent, writableFinished } = this
    span.set([
      'http.response.status_code',
      headersSent ? statusCode : undefined,
      'torchserve_ts.response.complete',
      writableFinished ? undefined : false,
      'error.type',
      statusCode >= 500 ? String(statusCode) : undefined,
    ])
    span.end(headersSent && statusCode >= 500)
  }

  /** To the given head if it is a list: a header that was set before would cost a merge of both. */
  #add(given: string | Headers | undefined, name: string, value: string): void {
    if (Array.isArray(given)) given.push(name, value)
    else this.setHeader(name, value)
  }
}
