import busboy, { type Busboy, type FileInfo } from 'busboy'
import type { Readable } from 'node:stream'
import { ServeError } from '../../../common/errors.ts'
import type { InputPart } from '../../jobs/job.ts'
import { MAX_PARTS, tooManyParts } from '../../jobs/request-limits.ts'
import { BodyCollector } from './body-collector.ts'

type Done = (error: ServeError | undefined, parts: InputPart[]) => void

/**
 * Parses a complete multipart/form-data body. Parts with a file name keep their content type; plain fields
 * have none, as in TorchServe (NettyUtils.getFormData). The bytes of parts are unchanged and in order. Calls
 * back exactly once. Fails with MALFORMED_BODY or INVALID_ARGUMENT.
 */
export function parseMultipart(body: Buffer, contentType: string, done: Done): void {
  const parts: InputPart[] = []
  let parser: Busboy | undefined
  let ended = false
  const end = (error: ServeError | undefined): void => {
    if (ended) return
    ended = true
    parser?.destroy()
    done(error, error === undefined ? parts : [])
  }
  const add = (name: string | undefined, type: string | undefined): InputPart | undefined => {
    if (name === undefined) {
      end(malformed('each part must have a name'))
      return undefined
    }
    if (parts.length >= MAX_PARTS) {
      end(tooManyParts())
      return undefined
    }
    const part: InputPart = { name, contentType: type, data: NO_BYTES }
    parts.push(part)
    return part
  }
  const encoding = fieldEncoding(body)
  try {
    parser = busboy({
      headers: { 'content-type': contentType },
      defCharset: encoding,
      defParamCharset: 'utf8',
      limits: { fieldSize: Infinity, fileSize: Infinity, parts: MAX_PARTS + 1 },
    })
  } catch (cause) {
    end(malformed('the Content-Type must have a boundary', cause))
    return
  }
  const refuse = (cause: unknown): void => end(malformed('its parts are malformed', cause))
  const takeField = (name: string | undefined, value: string): void => {
    const part = add(name, undefined)
    if (part !== undefined) part.data = Buffer.from(value, encoding)
  }
  const takeFile = (name: string | undefined, file: Readable, info: FileInfo): void => {
    // Added before the parser can end and fail the file, because an error event without a listener ends the
    // process.
    file.on('error', () => undefined)
    const part = add(name, fileType(info))
    if (part === undefined) file.resume()
    else collect(file, part, refuse)
  }
  parser.on('field', caught(refuse, takeField))
  parser.on('file', caught(refuse, takeFile))
  parser.on('error', refuse)
  parser.on('close', () => end(undefined))
  try {
    parser.end(body)
  } catch (cause) {
    refuse(cause)
  }
}

/** Exceptions of a listener go to `refuse`; otherwise they would end the process. */
function caught<Args extends unknown[]>(
  refuse: (cause: unknown) => void,
  listener: (...args: Args) => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      listener(...args)
    } catch (cause) {
      refuse(cause)
    }
  }
}

const NO_BYTES = Buffer.alloc(0)

/**
 * busboy returns fields as strings. latin1 keeps every byte, but a field that declares a charset only
 * survives as UTF-8, which shows only in the body itself.
 */
function fieldEncoding(body: Buffer): 'latin1' | 'utf8' {
  return body.includes('charset', 0, 'latin1') || body.includes('Charset', 0, 'latin1') ? 'utf8' : 'latin1'
}

/** A plain field of type application/octet-stream also arrives as a file, but without a name. */
function fileType(info: FileInfo): string | undefined {
  return info.filename === undefined ? undefined : info.mimeType
}

function collect(file: Readable, part: InputPart, refuse: (cause: unknown) => void): void {
  const content = new BodyCollector(Infinity)
  const take = (piece: Buffer): void => void content.add(piece)
  const keep = (): void => {
    part.data = content.bytes()
  }
  file.on('data', caught(refuse, take))
  file.on('end', caught(refuse, keep))
}

function malformed(why: string, cause?: unknown): ServeError {
  return new ServeError('MALFORMED_BODY', `The multipart body cannot be read: ${why}.`, { cause })
}
