import type { HandlerMethod, InputPart } from '../../common/handler-methods.ts'
import { ServeError } from '../../common/errors.ts'

import { randomFillSync } from 'node:crypto'
import type { RequestSpan } from '../observe/traces/tracing.ts'

/** Maximum number of inputs per request, because each costs far more memory than its bytes on the wire. */
export const MAX_PARTS = 1_024
/** What a request may add to a worker's frame beyond max_request_size, in bytes: names, types, headers. */
const REQUEST_OVERHEAD_BYTES = 512 * 1_024
/** Upper bound of the keys and lengths of one input in a frame, in bytes. */
const PART_OVERHEAD_BYTES = 64

/** Bytes from which on a batch takes no further request: what is beyond them makes the next batch. */
export const FULL_BATCH_BYTES = 2 ** 29
/** Bytes of a batch's frame. Twice as many, because its requests have more than their inputs and headers. */
const BATCH_FRAME_BYTES = 2 * FULL_BATCH_BYTES

/**
 * Maximum bytes of the requests in one frame. A frame holds the largest request, whatever the product of size
 * and number: frames have at most 4 GiB.
 */
export function batchFrameBytes(maxRequestSize: number, batchSize: number): number {
  const request = maxRequestSize + REQUEST_OVERHEAD_BYTES
  return Math.min(request * batchSize, Math.max(request, BATCH_FRAME_BYTES))
}

export function tooManyParts(): ServeError {
  return new ServeError('INVALID_ARGUMENT', `A request may have at most ${MAX_PARTS} inputs.`)
}

/**
 * Rejects a request that exceeds a frame, which would end the worker. @throws ServeError PAYLOAD_TOO_LARGE
 */
export function checkSize(request: Pick<JobRequest, 'parts' | 'headers'>, maxRequestSize: number): void {
  if (requestBytes(request) > maxRequestSize + REQUEST_OVERHEAD_BYTES) {
    throw new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
  }
}

/** Upper bound of the bytes that a request takes in a frame. */
export function requestBytes({ parts, headers }: Pick<JobRequest, 'parts' | 'headers'>): number {
  let bytes = headers.length
  for (const { name, contentType, data } of parts) {
    bytes += data.byteLength + textBytes(name) + PART_OVERHEAD_BYTES
    if (contentType !== undefined) bytes += textBytes(contentType)
  }
  return bytes
}

/**
 * UTF-8 bytes. For a short text an upper bound, because counting would take longer than the rest of the
 * check.
 */
function textBytes(text: string): number {
  return text.length < 64 ? text.length * 3 : Buffer.byteLength(text)
}

const RANDOM_BYTES = 16
const random = Buffer.alloc(256 * RANDOM_BYTES)
let used = random.length

/** The id that is made next: only its digits change. */
const text = Buffer.from('00000000-0000-4000-8000-000000000000')
/** Where its digits are, two for each random byte. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]
const DIGITS = Buffer.from('0123456789abcdef')

/**
 * A random UUID (RFC 9562, version 4) for x-request-id. The one of node:crypto is a string of twenty pieces,
 * which cost the garbage collector as much as two more headers; this one is a single piece.
 */
export function newRequestId(): string {
  if (used === random.length) {
    randomFillSync(random)
    used = 0
  }
  for (let i = 0; i < RANDOM_BYTES; i += 1) {
    let byte = random[used + i]!
    if (i === 6) byte = (byte & 0x0f) | 0x40
    else if (i === 8) byte = (byte & 0x3f) | 0x80
    const place = PLACES[i]!
    text[place] = DIGITS[byte >> 4]!
    text[place + 1] = DIGITS[byte & 0x0f]!
  }
  used += RANDOM_BYTES
  return text.toString('latin1')
}

/** Who sent a request. Few requests need any of it, so it is read only then. */
export interface Sender {
  /** The address of the client, without its port. */
  readonly address: string
  /** Name of the API key or certificate, the subject of the JWT; undefined: TorchServe's keys, or none. */
  readonly keyName: string | undefined
  /** Tells callers with names apart; undefined where `keyName` is. */
  readonly identity: string | undefined
  /** Of the request; undefined: it has none. */
  readonly span?: RequestSpan | undefined
  /** Weights chose this version for a request of it. Absent: nobody wants to know. */
  servedBy?(version: string): void
}

/** The address of a client that has none. */
export const UNIX_SOCKET = 'unix socket'

/** Sends the further inputs of one request to its worker. */
export interface InputPort {
  /** `data` undefined: no further input follows. */
  input(data: Uint8Array | undefined): void
}

/**
 * The further inputs of a request whose client sends several. They wait here until a worker has the request.
 */
export interface InputFeed {
  /** A worker has the request. */
  connect(port: InputPort): void
  /** The handler has asked for this many inputs. */
  taken(inputs: number): void
  /** Whether the handler waits for an input that the client has not sent. */
  readonly waitsForClient: boolean
}

/** A request of a client in neutral form, the same for all dialects. */
export interface JobRequest {
  /** x-request-id: a uuid that the server chose. */
  requestId: string
  /** The API that it came by: `torchserve`, `open-inference-grpc`. Absent: the server asks itself. */
  dialect?: string
  /** Absent: the server asks itself. */
  sender?: Sender
  modelName: string
  /** Absent: the default version, or the one that the weights of the model choose. */
  modelVersion?: string
  /** The version that was chosen when the request was read (`ModelOperations.route`). Absent: it was not. */
  routedTo?: string
  /** The method of the handler to call. A native method only if the handler has it. */
  method: HandlerMethod
  /**
   * The client's headers with names as the client wrote them, in the format of common/headers.ts. The
   * server does not interpret them.
   */
  headers: string
  /** The headers with credentials, in the same format. Only handlers whose model asks for them get them. */
  credentials?: string
  /**
   * The rest of the path after the version. The handler gets it as the header `url_path`, as in TorchServe.
   * Absent: no such header.
   */
  urlPath?: string
  /**
   * Sends the header `explain` to the handler for predictions too, as TorchServe does on paths that also have
   * an explaining form. Default false.
   */
  tellsExplain?: boolean
  parts: InputPart[]
  /** The client's deadline in milliseconds since the epoch. */
  deadline?: number
  /** The job is never batched with others. */
  alone?: boolean
  /** Further inputs follow. Only for handlers that accept them (`predictStream`). */
  feed?: InputFeed
}

export function inputBytes({ parts, headers }: Pick<JobRequest, 'parts' | 'headers'>): number {
  let bytes = headers.length
  for (const { data } of parts) bytes += data.byteLength
  return bytes
}
