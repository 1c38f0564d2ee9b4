import { ServeError } from '../../../common/errors.ts'
import type { InputPart } from '../../../common/handler-methods.ts'
import { queueFull } from '../../jobs/open-jobs.ts'
import { BodyCollector } from './body-collector.ts'
import { ChunkAllowance, TINY_CHUNKS } from './chunk-allowance.ts'
import type { HttpCall } from './http-call.ts'
import { readUrlEncoded } from './form.ts'
import { parseMultipart } from './multipart.ts'
import { declaredLength, hasBody, mediaType } from './request-headers.ts'
import type { BodyTaker } from './server-request.ts'

type PartsCallback = (parts: InputPart[]) => void

const NO_BYTES = Buffer.alloc(0)

/**
 * Reads the body as inputs of the handler: the fields of a form, or one part `body`. Calls back at once
 * without a body. Fails the call with PAYLOAD_TOO_LARGE, MALFORMED_BODY or INVALID_ARGUMENT.
 */
export function readParts(call: HttpCall, done: PartsCallback): void {
  const { req } = call
  const contentType = mediaType(req.headers['content-type'])
  if (!hasBody(req)) {
    done([{ name: 'body', contentType, data: NO_BYTES }])
    return
  }
  readBody(call, (body) =>
    done(contentType === undefined ? [{ name: 'body', data: body }] : partsOf(call, body, contentType)),
  )
}

/** @throws ServeError MALFORMED_BODY, INVALID_ARGUMENT */
function partsOf(call: HttpCall, body: Buffer, contentType: string): InputPart[] {
  const { req, state } = call
  const whole: InputPart = { name: 'body', contentType, data: body }
  switch (contentType.toLowerCase()) {
    case 'multipart/form-data':
      // Without a boundary it is no form, as in TorchServe.
      return parseMultipart(body, req.headers['content-type']!) ?? [whole]
    case 'application/x-www-form-urlencoded': {
      const parts = readUrlEncoded(body, state.settings.maxRequestElements)
      if (parts[0]?.name !== 'body') explainForm(call)
      return parts
    }
    default:
      return [whole]
  }
}

/** Tells the log, and so the author of a handler in `dev`, once what curl does with text that has a `=`. */
function explainForm({ req, state }: HttpCall): void {
  if (state.formExplained || !req.headers['user-agent']?.startsWith('curl/')) return
  state.formExplained = true
  state.log.warn({}, FROM_CURL)
}

const FROM_CURL =
  'A request was read as a form, because curl -d sends no other content type by itself: its fields are the ' +
  "inputs of the handler. For text or JSON add -H 'content-type: text/plain' or 'application/json'"

/**
 * Reads a body of at most max_request_size bytes; first sends `100 Continue` if the client waits for it.
 * Chunks are joined as they arrive, so many small chunks need no more memory than a large one. The call
 * fails with PAYLOAD_TOO_LARGE, INVALID_ARGUMENT, or QUEUE_FULL when its address has half of
 * max_unfinished_bytes already, or all are taken. `done` is not called then, and never if the client
 * disconnects.
 * @param failed instead of the failure of the call
 */
export function readBody(
  call: HttpCall,
  done: BodyCallback,
  failed = (error: ServeError): void => call.fail(error),
): void {
  const { req, res } = call
  if (req.headers.expect !== undefined) res.writeContinue()
  req.passTo(new BodyReader(call, done, failed))
}

type BodyCallback = (body: Buffer) => void

class BodyReader implements BodyTaker {
  readonly #call: HttpCall
  readonly #done: BodyCallback
  readonly #failed: (error: ServeError) => void
  readonly #body: BodyCollector
  readonly #allowance = new ChunkAllowance()
  readonly #expected: number
  #isOver = false

  constructor(call: HttpCall, done: BodyCallback, failed: (error: ServeError) => void) {
    const { req, state } = call
    this.#call = call
    this.#done = done
    this.#failed = failed
    this.#expected = declaredLength(req)
    this.#body = new BodyCollector(Math.min(state.settings.maxRequestSize, this.#expected))
  }

  take(chunk: Buffer): boolean {
    if (this.#isOver) return false
    if (!this.#allowance.take(chunk)) {
      this.#finish(new ServeError('INVALID_ARGUMENT', TINY_CHUNKS))
      // Whoever sends on costs nothing more; the answer still leaves. Before the next read of this turn.
      process.nextTick(() => this.#call.req.pause())
      return false
    }
    if (!this.#body.add(chunk)) {
      this.#finish(new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size'))
      return false
    }
    const { req, state, connection } = this.#call
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
    const call = this.#call
    this.#isOver = true
    call.connection.bodyEnded()
    call.guard(() => (error === undefined ? this.#done(this.#body.bytes()) : this.#failed(error)))
  }
}
