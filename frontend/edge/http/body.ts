import { ServeError } from '../../../common/errors.ts'
import type { InputPart } from '../../../common/handler-methods.ts'
import { queueFull } from '../../jobs/open-jobs.ts'
import { type BodyTaker, ChunkAllowance, TINY_CHUNKS } from './server-request.ts'
import type { HttpCall } from './http-call.ts'
import { parseMultipart, readUrlEncoded } from './forms.ts'
import { declaredLength, hasBody, mediaType } from './request-head.ts'
import { ByteCollector } from '../../../common/byte-flow.ts'
import type { IncomingMessage } from 'node:http'
import { createGunzip, createInflate, type Gunzip, type Inflate } from 'node:zlib'

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

/** Joins the chunks of a body; one in a single chunk is not copied. */
class BodyReader implements BodyTaker {
  readonly #call: HttpCall
  readonly #done: BodyCallback
  readonly #failed: (error: ServeError) => void
  readonly #allowance = new ChunkAllowance()
  /** Bytes that the client has declared. */
  readonly #expected: number
  readonly #limit: number
  #only: Buffer = NO_BYTES
  #joined: ByteCollector | undefined
  #isOver = false

  constructor(call: HttpCall, done: BodyCallback, failed: (error: ServeError) => void) {
    this.#call = call
    this.#done = done
    this.#failed = failed
    this.#expected = declaredLength(call.req)
    this.#limit = Math.min(call.state.settings.maxRequestSize, this.#expected)
  }

  take(chunk: Buffer): boolean {
    if (this.#isOver) return false
    const { req, state, connection } = this.#call
    if (!this.#allowance.take(chunk)) {
      this.#finish(new ServeError('INVALID_ARGUMENT', TINY_CHUNKS))
      // Whoever sends on costs nothing more; the answer still leaves. Before the next read of this turn.
      process.nextTick(() => req.pause())
      return false
    }
    if (!this.#add(chunk)) {
      this.#finish(tooLarge())
      return false
    }
    // A body that comes at once, as most do, is never counted.
    if (req.bodyBytes >= this.#expected) return true
    if (connection.holdsBody(state.admission, this.#joined?.capacity ?? this.#only.length)) return true
    this.#finish(queueFull('Too many bytes of unfinished requests wait (max_unfinished_bytes)'))
    return false
  }

  end(): void {
    this.#finish(undefined)
  }

  #add(chunk: Buffer): boolean {
    if (this.#joined === undefined) {
      if (this.#only.length === 0 && chunk.length <= this.#limit) {
        this.#only = chunk
        return true
      }
      this.#joined = new ByteCollector(this.#limit)
      this.#joined.add(this.#only)
      this.#only = NO_BYTES
    }
    return this.#joined.add(chunk)
  }

  #finish(error: ServeError | undefined): void {
    this.#isOver = true
    this.#call.connection.bodyEnded()
    this.#call.guard(() => {
      if (error === undefined) this.#done(this.#joined?.bytes() ?? this.#only)
      else this.#failed(error)
    })
  }
}

function tooLarge(): ServeError {
  return new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
}

type CreateDecoder = () => Gunzip | Inflate

const DECODERS: ReadonlyMap<string, CreateDecoder> = new Map<string, CreateDecoder>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
])

/**
 * Reads and decompresses a body; both sizes are limited by max_request_size. Then removes the encoding from
 * the request's headers. Not for TorchServe's routes, where handlers decompress bodies themselves. Fails the
 * call with PAYLOAD_TOO_LARGE or MALFORMED_BODY.
 * @throws ServeError UNSUPPORTED_ENCODING
 */
export function readDecoded(call: HttpCall, done: BodyCallback): void {
  const { req } = call
  if (!hasBody(req)) {
    done(NO_BYTES)
    return
  }
  const encoding = req.headers['content-encoding']?.toLowerCase() ?? 'identity'
  const createDecoder = DECODERS.get(encoding)
  if (createDecoder === undefined && encoding !== 'identity')
    throw new ServeError('UNSUPPORTED_ENCODING', 'Content-Encoding must be gzip or deflate')
  readBody(call, (body) => {
    if (createDecoder === undefined) {
      done(body)
      return
    }
    withoutEncoding(req)
    decode(call, createDecoder(), body, done)
  })
}

/** Joins the output as it arrives; zlib's own function would keep all pieces besides the result. */
function decode(call: HttpCall, decoder: Gunzip | Inflate, body: Buffer, done: BodyCallback): void {
  const decoded = new ByteCollector(call.state.settings.maxRequestSize)
  let finished = false
  const finish = (error: ServeError | undefined): void => {
    if (finished) return
    finished = true
    decoder.destroy()
    if (error === undefined) done(decoded.bytes())
    else call.fail(error)
  }
  const take = (piece: Buffer): void => {
    if (finished || decoded.add(piece)) return
    finish(tooLarge())
  }
  const refuse = (cause: Error): void => {
    const why = 'The body does not match its Content-Encoding'
    finish(new ServeError('MALFORMED_BODY', why, { cause }))
  }
  const end = (): void => finish(undefined)
  decoder.on('data', call.guarded(take)).on('error', call.guarded(refuse)).on('end', call.guarded(end))
  decoder.end(body)
}

/** A handler that saw the header would decompress again. */
function withoutEncoding({ headers, rawHeaders }: IncomingMessage): void {
  delete headers['content-encoding']
  for (let i = rawHeaders.length - 2; i >= 0; i -= 2) {
    if (rawHeaders[i]!.toLowerCase() === 'content-encoding') rawHeaders.splice(i, 2)
  }
}
