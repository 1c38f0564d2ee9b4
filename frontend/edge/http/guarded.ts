import type { ServerResponse } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { errorBody } from '../../dialects/torchserve/rest-errors.ts'
import { logFailure } from './log-failure.ts'
import type { RestLog } from './rest-state.ts'

/**
 * A listener of a stream that belongs to one request, or what runs when it is done. Nothing else catches an
 * exception there: it would end the process. It fails this request alone: 500 if nothing was sent yet, else
 * its connection ends.
 */
export function guarded<Args extends unknown[]>(
  log: RestLog,
  res: ServerResponse,
  listener: (...args: Args) => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      listener(...args)
    } catch (thrown) {
      fail(log, res, ServeError.from(thrown))
    }
  }
}

function fail(log: RestLog, res: ServerResponse, error: ServeError): void {
  logFailure(log, 'none', error)
  if (res.headersSent || res.destroyed) {
    res.destroy()
    return
  }
  const body = errorBody(500, 'InternalServerException', 'Internal server error')
  const length = String(Buffer.byteLength(body))
  const headers = ['content-type', 'application/json', 'content-length', length, 'connection', 'close']
  res.writeHead(500, headers).end(body)
}
