import type { ServerResponse } from 'node:http'
import { answered } from './answered.ts'
import { prettyJson } from '../../dialects/torchserve/rest-errors.ts'
import { commonHeaders } from './reply-headers.ts'
import type { RestState } from './rest-state.ts'

type Response = ServerResponse

/** Answers with TorchServe's pretty JSON. */
export function sendJson(
  state: RestState,
  res: Response,
  requestId: string,
  status: number,
  value: unknown,
): void {
  send(state, res, requestId, status, 'application/json', prettyJson(value))
}

/** Any body; the connection stays open unless the status is an error or somebody wants it closed. */
function send(
  state: RestState,
  res: Response,
  requestId: string,
  status: number,
  contentType: string,
  text: string,
): void {
  const body = Buffer.from(text)
  const headers = headersFor(state, res, requestId, status)
  headers.push('content-type', contentType, 'content-length', String(body.byteLength))
  answered(state, res, status)
  res.writeHead(status, headers)
  res.end(body)
}

function headersFor(state: RestState, res: Response, requestId: string, status: number): string[] {
  const keepAlive = status < 400 && !state.draining && res.shouldKeepAlive
  const headers = commonHeaders(requestId, keepAlive)
  headers.push(...state.cors)
  return headers
}
