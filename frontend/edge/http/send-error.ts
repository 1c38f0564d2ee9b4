import { STATUS_CODES, type ServerResponse } from 'node:http'
import type { ServeError } from '../../../common/errors.ts'
import { answered, logAccess } from './answered.ts'
import { errorAnswer, errorBody } from '../../dialects/torchserve/rest-errors.ts'
import { logFailure } from './log-failure.ts'
import { errorAnswer as openInferenceError } from '../../dialects/open-inference/rest-errors.ts'
import { commonHeaders } from './reply-headers.ts'
import type { RestState } from './rest-state.ts'

/** How long a refused upload is read and thrown away, so that its client gets to see the answer. */
const LINGER_MS = 2_000

/** Answers with TorchServe's error JSON and closes the connection. The head must not have been sent. */
export function sendError(state: RestState, res: ServerResponse, requestId: string, error: ServeError): void {
  logFailure(state.log, requestId, error)
  const { status, type } = errorAnswer(error)
  if (error.code === 'PAYLOAD_TOO_LARGE') {
    logAccess(state, res, status)
    sendTooLarge(res)
    return
  }
  const json = isUnknownToV2(res, error)
    ? openInferenceError(error).json
    : errorBody(status, type, error.message)
  refuse(state, res, commonHeaders(requestId, false), status, json)
}

/** Clients of the Open Inference Protocol look for its key on every path below /v2, also on those that only Triton has. */
function isUnknownToV2({ req }: ServerResponse, { code }: ServeError): boolean {
  return code === 'ROUTE_NOT_FOUND' && req.url!.startsWith('/v2/')
}

/**
 * Answers with a JSON error of any dialect and closes the connection; `headers` are the dialect's own, names and values one
 * after the other. The head must not have been sent.
 */
export function refuse(
  state: RestState,
  res: ServerResponse,
  headers: string[],
  status: number,
  json: string,
): void {
  answered(state, res, status)
  const body = Buffer.from(json)
  headers.push('content-type', 'application/json', 'content-length', String(body.byteLength), ...state.cors)
  // A reason that a handler set and Node refused would still stand without one of ours.
  res.writeHead(status, STATUS_CODES[status] ?? '', headers)
  endAfterUpload(res, body)
}

/** 413 is bare, as in TorchServe: no JSON, no x-request-id, and no metric counts it. */
function sendTooLarge(res: ServerResponse): void {
  res.writeHead(413, ['content-length', '0', 'connection', 'close'])
  endAfterUpload(res, undefined)
}

/**
 * Closing a socket with unread input resets it, and many clients then never read the answer. So the answer goes out at once,
 * and the socket is closed when the upload has ended, or after a short time.
 */
function endAfterUpload(res: ServerResponse, body: Buffer | undefined): void {
  const req = res.req
  if (req.complete || req.destroyed) {
    res.end(body)
    return
  }
  if (body === undefined) res.flushHeaders()
  else res.write(body)
  const finish = (): void => {
    clearTimeout(timer)
    res.end()
  }
  const timer = setTimeout(finish, LINGER_MS)
  req.once('end', finish).once('close', finish).resume()
}
