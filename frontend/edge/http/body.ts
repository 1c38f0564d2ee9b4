import { ServeError } from '../../../common/errors.ts'
import type { InputPart } from '../../jobs/job.ts'
import { BodyCollector } from './body-collector.ts'
import { ChunkAllowance, TINY_CHUNKS } from './chunk-allowance.ts'
import type { Exchange } from './exchange.ts'
import { parseForm } from './form.ts'
import { parseMultipart } from './multipart.ts'
import { declaredLength, hasBody, mediaType } from './request-headers.ts'

type PartsCallback = (error: ServeError | undefined, parts: InputPart[]) => void

const NO_BYTES = Buffer.alloc(0)

/**
 * Reads the body as inputs of the handler: the fields of a form, or one part `body`. Calls back at once
 * without a body. Fails with PAYLOAD_TOO_LARGE, MALFORMED_BODY or INVALID_ARGUMENT.
 */
export function readParts(exchange: Exchange, done: PartsCallback): void {
  const { req } = exchange
  const header = req.headers['content-type']
  const contentType = mediaType(header)
  if (!hasBody(req)) {
    done(undefined, [{ name: 'body', contentType, data: NO_BYTES }])
    return
  }
  readBody(exchange, (error, body) => {
    if (error !== undefined) done(error, [])
    else if (contentType === undefined) done(undefined, [{ name: 'body', data: body }])
    else parseBody(body, header!, contentType, exchange.guarded(done))
  })
}

function parseBody(body: Buffer, header: string, contentType: string, done: PartsCallback): void {
  switch (contentType.toLowerCase()) {
    case 'multipart/form-data':
      parseMultipart(body, header, done)
      return
    case 'application/x-www-form-urlencoded':
      readForm(body, done)
      return
    default:
      done(undefined, [{ name: 'body', contentType, data: body }])
  }
}

/**
 * Reads a body of at most max_request_size bytes; first sends `100 Continue` if the client waits for it.
 * Chunks are joined as they arrive, so many small chunks need no more memory than a large one. `done` is
 * never called if the client disconnects.
 */
export function readBody(
  exchange: Exchange,
  done: (error: ServeError | undefined, body: Buffer) => void,
): void {
  const { req, res, state } = exchange
  if (req.headers.expect !== undefined) res.writeContinue()
  const body = new BodyCollector(Math.min(state.settings.maxRequestSize, declaredLength(req)))
  let finished = false
  const finish = (error: ServeError | undefined): void => {
    if (finished) return
    finished = true
    done(error, error === undefined ? body.bytes() : NO_BYTES)
  }
  const allowance = new ChunkAllowance()
  const take = (chunk: Buffer): void => {
    exchange.received += chunk.length
    if (finished) return
    if (!allowance.take(chunk)) {
      finish(new ServeError('INVALID_ARGUMENT', TINY_CHUNKS))
      // Whoever sends on costs nothing more; the answer still leaves. Before the next read of this turn.
      process.nextTick(() => req.pause())
    } else if (!body.add(chunk)) {
      finish(new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size'))
    }
  }
  const end = (): void => finish(undefined)
  req.on('data', exchange.guarded(take)).on('end', exchange.guarded(end))
}

function readForm(body: Buffer, done: PartsCallback): void {
  let parts: InputPart[]
  try {
    parts = parseForm(body)
  } catch (thrown) {
    done(ServeError.from(thrown), [])
    return
  }
  done(undefined, parts)
}
