import { randomUUID } from 'node:crypto'
import { ServeError } from '../../common/errors.ts'
import { headerLine, splitHeaders } from '../../common/header-lines.ts'
import { ownValue } from '../../common/own-keys.ts'
import type { Settings } from '../config/settings.ts'
import type { JobRequest } from './job.ts'
import type { ReplyHead } from './reply-sink.ts'

/** Names of the sequence headers: TorchServe's keys ts_header_key_sequence_* (docs/batching.md). */
export interface SequenceHeaders {
  /** The sequence of a request, and of its response. */
  readonly id: string
  /** `true` on the first request of a sequence: the server sets it where it chose the id. */
  readonly start: string
  /** On a request: `true` on the last one. On a response: ids of ended sequences, separated by semicolons. */
  readonly end: string
}

/** The settings with these names. */
export type SequenceSettings = Pick<
  Settings,
  'tsHeaderKeySequenceId' | 'tsHeaderKeySequenceStart' | 'tsHeaderKeySequenceEnd'
>

export function sequenceHeadersOf(settings: SequenceSettings): SequenceHeaders {
  return {
    id: settings.tsHeaderKeySequenceId,
    start: settings.tsHeaderKeySequenceStart,
    end: settings.tsHeaderKeySequenceEnd,
  }
}

/** Most characters of an id. A server keeps those of sequences that wait for their next request. */
const MAX_ID_LENGTH = 1024

/** What the headers of a request say about its sequence. */
export interface SequenceRequest {
  /** Undefined if the client gave no id. */
  readonly id: string | undefined
  /** Whether the handler can find the id under the exact header name. */
  readonly exact: boolean
  readonly first: boolean
  readonly last: boolean
}

/**
 * Names are matched in any letter case, because proxies and HTTP/2 change it. @throws ServeError
 * INVALID_ARGUMENT when the id is too long
 */
export function readSequence(lines: string, names: SequenceHeaders): SequenceRequest {
  const headers = splitHeaders(lines)
  const exact = ownValue(headers, names.id)
  const id = exact ?? anyCase(headers, names.id)
  const first = isTrue(anyCase(headers, names.start))
  const last = isTrue(anyCase(headers, names.end))
  return { id: checkedId(id), exact: exact !== undefined && exact !== '', first, last }
}

/** The id as a string of its own: what is cut from a string keeps the whole of it, here all headers. */
function checkedId(id: string | undefined): string | undefined {
  if (id === undefined || id === '') return undefined
  if (id.length > MAX_ID_LENGTH)
    throw new ServeError(
      'INVALID_ARGUMENT',
      `The id of a sequence must have at most ${MAX_ID_LENGTH} characters`,
    )
  return Buffer.from(id).toString()
}

/** An id for a sequence whose client gave none. */
export function newSequenceId(): string {
  return `ts-seq-${randomUUID()}`
}

/** Adds the id to the headers for the handler; for a new sequence without id also the start header. */
export function writeSequence(
  request: JobRequest,
  { id: given, exact }: SequenceRequest,
  id: string,
  names: SequenceHeaders,
): void {
  if (!exact) request.headers += headerLine(names.id, id)
  if (given === undefined) request.headers += headerLine(names.start, 'true')
}

/** The ids of sequences that the handler ended. */
export function endedSequences(headers: ReplyHead['headers'], names: SequenceHeaders): string[] {
  const value = anyCase(headers, names.end)
  return value === undefined ? [] : value.split(';').map((id) => id.trim())
}

/** The headers of a response with its sequence's id, unless the handler has set one. */
export function withSequenceId(
  headers: ReplyHead['headers'],
  id: string,
  names: SequenceHeaders,
): ReplyHead['headers'] {
  return anyCase(headers, names.id) === undefined ? { ...headers, [names.id]: id } : headers
}

export function isTrue(text: string | undefined): boolean {
  return text?.toLowerCase() === 'true'
}

function anyCase(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  const wanted = name.toLowerCase()
  return Object.entries(headers).find(([key]) => key.toLowerCase() === wanted)?.[1]
}
