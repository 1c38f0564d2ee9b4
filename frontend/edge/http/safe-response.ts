import { ServerResponse, type IncomingMessage } from 'node:http'

/** Keeps browsers from taking an answer for anything but its content type. */
export const NO_SNIFF = ['x-content-type-options', 'nosniff'] as const

type Headers = Parameters<ServerResponse['writeHead']>[1]

/**
 * Every response of the REST listeners. The header is added here, and not where heads are made, so that
 * Node's own answers (400 without Host, 417) and Koa's have it too.
 */
export class SafeResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  override writeHead(status: number, ...rest: unknown[]): this {
    const headers = rest[rest.length - 1]
    if (Array.isArray(headers)) headers.push(...NO_SNIFF)
    else this.setHeader(...NO_SNIFF)
    return super.writeHead(status, ...(rest as [reason: string, headers: Headers]))
  }
}
