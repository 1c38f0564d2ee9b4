import type { IncomingMessage } from 'node:http'
import { createGunzip, createInflate, type Gunzip, type Inflate } from 'node:zlib'
import { ServeError } from '../../../common/errors.ts'
import { BodyCollector } from './body-collector.ts'
import { readBody } from './body.ts'
import type { HttpCall } from './http-call.ts'
import { hasBody } from './request-headers.ts'

type Done = (body: Buffer) => void
type CreateDecoder = () => Gunzip | Inflate

const NO_BYTES = Buffer.alloc(0)
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
export function readDecoded(call: HttpCall, done: Done): void {
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
function decode(call: HttpCall, decoder: Gunzip | Inflate, body: Buffer, done: Done): void {
  const decoded = new BodyCollector(call.state.settings.maxRequestSize)
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
    finish(new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size'))
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
