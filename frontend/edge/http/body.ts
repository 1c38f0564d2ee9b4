import type { IncomingMessage, ServerResponse } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import type { InputPart } from '../../jobs/job.ts'
import { parseForm } from './form.ts'
import { parseMultipart } from './multipart.ts'
import { hasBody, mediaType } from './request-headers.ts'

type PartsCallback = (error: ServeError | undefined, parts: InputPart[]) => void

const NO_BYTES = Buffer.alloc(0)

/**
 * The body as the handler's inputs (spec 1.6): fields of a form, or one part `body`. Calls back at once when there is no body.
 * Fails with PAYLOAD_TOO_LARGE, MALFORMED_BODY or INVALID_ARGUMENT.
 */
export function readParts(
  req: IncomingMessage,
  res: ServerResponse,
  maxBytes: number,
  done: PartsCallback,
): void {
  const header = req.headers['content-type']
  const contentType = mediaType(header)
  if (!hasBody(req)) {
    done(undefined, [{ name: 'body', contentType, data: NO_BYTES }])
    return
  }
  readBody(req, res, maxBytes, (error, body) => {
    if (error !== undefined) done(error, [])
    else if (contentType === undefined) done(undefined, [{ name: 'body', data: body }])
    else parseBody(body, header!, contentType, done)
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

/** Reads a whole body; sends `100 Continue` first if the client waits for it. When the client leaves before, `done` is never called. */
export function readBody(
  req: IncomingMessage,
  res: ServerResponse,
  maxBytes: number,
  done: (error: ServeError | undefined, body: Buffer) => void,
): void {
  if (req.headers.expect !== undefined) res.writeContinue()
  const chunks: Buffer[] = []
  let bytes = 0
  let finished = false
  const finish = (error: ServeError | undefined): void => {
    if (finished) return
    finished = true
    done(error, error !== undefined ? NO_BYTES : chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
  }
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength
    if (bytes <= maxBytes) chunks.push(chunk)
    else finish(new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size'))
  })
  req.on('end', () => {
    finish(undefined)
  })
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
