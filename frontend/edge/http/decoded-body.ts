import type { IncomingMessage, ServerResponse } from 'node:http'
import { gunzip, inflate, type InputType } from 'node:zlib'
import { ServeError } from '../../../common/errors.ts'
import { hasBody } from './request-headers.ts'
import { readBody } from './body.ts'

type Done = (error: ServeError | undefined, body: Buffer) => void
type Inflate = (
  data: InputType,
  options: { maxOutputLength: number },
  done: (error: Error | null, data: Buffer) => void,
) => void

const NO_BYTES = Buffer.alloc(0)
const ENCODINGS: Readonly<Record<string, Inflate>> = { gzip: gunzip, 'x-gzip': gunzip, deflate: inflate }

/**
 * The body as it was before compression, both limited by `maxBytes`; the request then says nothing of it any more. Not for TorchServe's
 * routes, where handlers unpack for themselves. Fails with PAYLOAD_TOO_LARGE, MALFORMED_BODY, UNSUPPORTED_ENCODING.
 */
export function readDecoded(req: IncomingMessage, res: ServerResponse, maxBytes: number, done: Done): void {
  if (!hasBody(req)) {
    done(undefined, NO_BYTES)
    return
  }
  const encoding = req.headers['content-encoding']?.toLowerCase() ?? 'identity'
  const decode = ENCODINGS[encoding]
  if (decode === undefined && encoding !== 'identity') {
    done(new ServeError('UNSUPPORTED_ENCODING', 'The content encoding must be gzip or deflate'), NO_BYTES)
    return
  }
  readBody(req, res, maxBytes, (error, body) => {
    if (error !== undefined || decode === undefined) {
      done(error, body)
      return
    }
    withoutEncoding(req)
    decode(body, { maxOutputLength: maxBytes }, (failed, data) => {
      done(failed === null ? undefined : refusal(failed), failed === null ? data : NO_BYTES)
    })
  })
}

/** A handler that saw the header would unpack what is unpacked already. */
function withoutEncoding({ headers, rawHeaders }: IncomingMessage): void {
  delete headers['content-encoding']
  for (let i = rawHeaders.length - 2; i >= 0; i -= 2) {
    if (rawHeaders[i]!.toLowerCase() === 'content-encoding') rawHeaders.splice(i, 2)
  }
}

function refusal(cause: NodeJS.ErrnoException): ServeError {
  if (cause.code === 'ERR_BUFFER_TOO_LARGE') {
    return new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
  }
  return new ServeError('MALFORMED_BODY', 'The body is not compressed as its Content-Encoding says', {
    cause,
  })
}
