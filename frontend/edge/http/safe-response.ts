import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
} from 'node:http'

/** Keeps browsers from taking an answer for anything but its content type. */
export const NO_SNIFF = ['x-content-type-options', 'nosniff'] as const

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]

/**
 * Every response of the REST listeners. Headers of all answers are added here, and not where heads are made,
 * so that Koa's answers, and those that Node writes by itself, have them too.
 */
export class SafeResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** The value of that header, where the request is traced. */
  traceresponse: string | undefined = undefined

  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    const given = headers ?? reason
    this.#add(given, NO_SNIFF[0], NO_SNIFF[1])
    if (this.traceresponse !== undefined) this.#add(given, 'traceresponse', this.traceresponse)
    return super.writeHead(status, reason as string, headers)
  }

  /** To the given head if it is a list: a header that was set before would cost a merge of both. */
  #add(given: string | Headers | undefined, name: string, value: string): void {
    if (Array.isArray(given)) given.push(name, value)
    else this.setHeader(name, value)
  }
}
