import { ServeError } from '../../../common/errors.ts'
import type { InputPart } from '../../../common/handler-methods.ts'
import { queueFull } from '../../jobs/open-jobs.ts'
import { BodyCollector } from './body-collector.ts'
import { ChunkAllowance, TINY_CHUNKS } from './chunk-allowance.ts'
import type { Exchange } from './exchange.ts'
import { readUrlEncoded } from './form.ts'
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
    else parseBody(exchange, body, contentType, done)
  })
}

function parseBody(exchange: Exchange, body: Buffer, contentType: string, done: PartsCallback): void {
  const { req, state } = exchange
  const whole: InputPart = { name: 'body', contentType, data: body }
  switch (contentType.toLowerCase()) {
    case 'multipart/form-data':
      // Without a boundary it is no form, as in TorchServe.
      readForm(() => parseMultipart(body, req.headers['content-type']!) ?? [whole], done)
      return
    case 'application/x-www-form-urlencoded':
      readForm(() => {
        const parts = readUrlEncoded(body, state.settings.maxRequestElements)
        if (parts[0]?.name !== 'body') explainForm(exchange)
        return parts
      }, done)
      return
    default:
      done(undefined, [whole])
  }
}

/** Tells the log, and so the author of a handler in `dev`, once what curl does with text that has a `=`. */
function explainForm({ req, state }: Exchange): void {
  if (state.formExplained || !req.headers['user-agent']?.startsWith('curl/')) return
  state.formExplained = true
  state.log.warn({}, FROM_CURL)
}

const FROM_CURL =
  'A request was read as a form, because curl -d sends no other content type by itself: its fields are the ' +
  "inputs of the handler. For text or JSON add -H 'content-type: text/plain' or 'application/json'"

/**
 * Reads a body of at most max_request_size bytes; first sends `100 Continue` if the client waits for it.
 * Chunks are joined as they arrive, so many small chunks need no more memory than a large one. Fails with
 * PAYLOAD_TOO_LARGE, INVALID_ARGUMENT, or QUEUE_FULL when its address has half of
 * max_unfinished_bytes already, or all are taken. `done` is never called if the client disconnects.
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
  readonly #expected: number
  #isOver = false

  constructor(exchange: Exchange, done: BodyCallback) {
    const { req, state } = exchange
    this.#exchange = exchange
    this.#done = done
    this.#expected = declaredLength(req)
    this.#body = new BodyCollector(Math.min(state.settings.maxRequestSize, this.#expected))
  }

  take(chunk: Buffer): boolean {
    if (this.#isOver) return false
    if (!this.#allowance.take(chunk)) {
      this.#finish(new ServeError('INVALID_ARGUMENT', TINY_CHUNKS))
      // Whoever sends on costs nothing more; the answer still leaves. Before the next read of this turn.
      process.nextTick(() => this.#exchange.req.pause())
      return false
    }
    if (!this.#body.add(chunk)) {
      this.#finish(new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size'))
      return false
    }
    const { req, state, connection } = this.#exchange
    // A body that comes at once, as most do, is never counted.
    if (req.bodyBytes >= this.#expected || connection.holdsBody(state.admission, this.#body.capacity))
      return true
    this.#finish(queueFull('Too many bytes of unfinished requests wait (max_unfinished_bytes)'))
    return false
  }

  end(): void {
    this.#finish(undefined)
  }

  #finish(error: ServeError | undefined): void {
    const exchange = this.#exchange
    this.#isOver = true
    exchange.connection.bodyEnded()
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
