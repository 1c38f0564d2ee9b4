import { Busboy, type BusboyInstance } from '@fastify/busboy'
import type { Readable } from 'node:stream'
import { ServeError } from '../../../common/errors.ts'
import type { InputPart } from '../../jobs/job.ts'
import { MAX_PARTS, tooManyParts } from '../../jobs/request-limits.ts'
import { BodyCollector } from './body-collector.ts'

type Done = (error: ServeError | undefined, parts: InputPart[]) => void

/** Headers of a part, in number and bytes. */
const MAX_HEADERS = 100
const MAX_HEADER_BYTES = 16_384

const LIMITS = {
  fieldSize: Infinity,
  fileSize: Infinity,
  parts: MAX_PARTS + 1,
  headerPairs: MAX_HEADERS,
  headerSize: MAX_HEADER_BYTES,
}

/**
 * Parses a complete multipart/form-data body. Parts with a file name keep their content type; plain fields
 * have none, as in TorchServe (NettyUtils.getFormData). The bytes of parts are unchanged and in order. Calls
 * back exactly once. Fails with MALFORMED_BODY or INVALID_ARGUMENT.
 */
export function parseMultipart(body: Buffer, contentType: string, done: Done): void {
  const parts: InputPart[] = []
  let parser: BusboyInstance | undefined
  let ended = false
  let endless: NodeJS.Timeout | undefined
  const end = (error: ServeError | undefined): void => {
    if (ended) return
    ended = true
    clearTimeout(endless)
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
  try {
    parser = new Busboy({
      headers: { 'content-type': contentType },
      limits: LIMITS,
      // A field as a text would lose bytes that are not of its charset.
      isPartAFile: () => true,
    })
  } catch (cause) {
    end(malformed('the Content-Type must have a boundary', cause))
    return
  }
  const refuse = (cause: unknown): void => end(malformed('its parts are malformed', cause))
  const take = (
    name: string | undefined,
    content: Readable,
    fileName: string | undefined,
    _encoding: string,
    type: string,
  ): void => {
    // Added before the parser can end and fail the part, because an error event without a listener ends the
    // process.
    content.on('error', refuse)
    const part = add(name, fileName === undefined ? undefined : type)
    if (part === undefined) content.resume()
    else collect(content, part, refuse)
  }
  parser.on('file', caught(refuse, take))
  parser.on('error', refuse)
  // The parser leaves out parts whose header it cannot read.
  parser.on('finish', () => {
    end(parts.length < partsIn(body, contentType) ? malformed('each part must have a header') : undefined)
  })
  try {
    parser.end(body)
  } catch (cause) {
    refuse(cause)
  }
  // The body is whole, so only a parser that waits for more of it takes until a timer runs.
  if (!ended) endless = setTimeout(() => refuse(new Error('The parser has no end')), ENDLESS_MS)
}

/** How many parts the delimiters of a body begin (RFC 2046, 5.1.1). */
function partsIn(body: Buffer, contentType: string): number {
  const found = /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType)
  const delimiter = Buffer.from(`--${found?.[1] ?? found?.[2] ?? ''}`)
  let count = 0
  for (let at = body.indexOf(delimiter); at >= 0; at = body.indexOf(delimiter, at + delimiter.byteLength)) {
    const isFirst = at === 0 || body.toString('latin1', at - 2, at) === '\r\n'
    if (
      isFirst &&
      body.toString('latin1', at + delimiter.byteLength, at + delimiter.byteLength + 2) === '\r\n'
    )
      count += 1
  }
  return count
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

/** Milliseconds after which a parser that has the whole body will not end any more. */
const ENDLESS_MS = 500

const NO_BYTES = Buffer.alloc(0)

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
