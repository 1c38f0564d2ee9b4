import { ServeError } from '../../../common/errors.ts'
import type { InputPart } from '../../jobs/job.ts'
import { BodyCollector } from './body-collector.ts'
import { ChunkAllowance, TINY_CHUNKS } from './chunk-allowance.ts'
import type { Exchange } from './exchange.ts'
import { parseForm } from './form.ts'
import { parseMultipart } from './multipart.ts'
import { declaredLength, hasBody, mediaType } from './request-headers.ts'
import type { BodyTaker } from './server-request.ts'

type PartsCallback = (error: ServeError | undefined, parts: InputPart[]) => void

const NO_BYTES = Buffer.alloc(0)

/**
 * Reads the body as inputs of the handler: the fields of a form, or one part `body`. Calls back at once
 * without a body. Fails with PAYLOAD_TOO_LARGE, MALFORMED_BODY or INVALID_ARGUMENT.
 */
export function readParts(exchange: Exchange, done: PartsCallback): void {
  const { req } = exchange
  const contentType = mediaType(req.headers['content-type'])
  if (!hasBody(req)) {
    done(undefined, [{ name: 'body', contentType, data: NO_BYTES }])
    return
  }
  readBody(exchange, (error, body) => {
    if (error !== undefined) done(error, [])
    else if (contentType === undefined) done(undefined, [{ name: 'body', data: body }])
    else parseBody(body, req.headers['content-type']!, contentType, done)
  })
}

function parseBody(body: Buffer, header: string, contentType: string, done: PartsCallback): void {
  switch (contentType.toLowerCase()) {
    case 'multipart/form-data':
      readForm(() => parseMultipart(body, header), done)
      return
    case 'application/x-www-form-urlencoded':
      readForm(() => parseForm(body), done)
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
export function readBody(exchange: Exchange, done: BodyCallback): void {
  const { req, res } = exchange
  if (req.headers.expect !== undefined) res.writeContinue()
  req.passTo(new BodyReader(exchange, done))
}

type BodyCallback = (error: ServeError | undefined, body: Buffer) => void

class BodyReader implements BodyTaker {
  readonly #exchange: Exchange
  readonly #done: BodyCallback
  readonly #body: BodyCollector
  readonly #allowance = new ChunkAllowance()

  constructor(exchange: Exchange, done: BodyCallback) {
    const { req, state } = exchange
    this.#exchange = exchange
    this.#done = done
    this.#body = new BodyCollector(Math.min(state.settings.maxRequestSize, declaredLength(req)))
  }

  take(chunk: Buffer): boolean {
    if (!this.#allowance.take(chunk)) {
      this.#finish(new ServeError('INVALID_ARGUMENT', TINY_CHUNKS))
      // Whoever sends on costs nothing more; the answer still leaves. Before the next read of this turn.
      process.nextTick(() => this.#exchange.req.pause())
      return false
    }
    if (this.#body.add(chunk)) return true
    this.#finish(new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size'))
    return false
  }

  end(): void {
    this.#finish(undefined)
  }

  #finish(error: ServeError | undefined): void {
    const exchange = this.#exchange
    exchange.guard(() => this.#done(error, error === undefined ? this.#body.bytes() : NO_BYTES))
  }
}

function readForm(parse: () => InputPart[], done: PartsCallback): void {
  let parts: InputPart[]
  try {
    parts = parse()
  } catch (thrown) {
    done(ServeError.from(thrown), [])
    return
  }
  done(undefined, parts)
}
