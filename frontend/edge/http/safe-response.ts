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
 * Every response of the REST listeners. The header is added here, and not where heads are made, so that
 * Koa's answers, and those that Node writes by itself, have it too.
 */
export class SafeResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    const given = headers ?? reason
    if (Array.isArray(given)) given.push(NO_SNIFF[0], NO_SNIFF[1])
    else this.setHeader(NO_SNIFF[0], NO_SNIFF[1])
    return super.writeHead(status, reason as string, headers)
  }
}
