import { randomUUID } from 'node:crypto'
import { ServeError } from '../../common/errors.ts'
import { headerLine } from '../../common/headers.ts'
import type { Settings } from '../config/settings.ts'
import type { JobRequest } from './job-request.ts'
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
  readonly first: boolean
  readonly last: boolean
  /** To be added to the headers, so that the handler finds the same values under the exact names. */
  readonly more: string
}

/**
 * Names are matched in any letter case, because proxies and HTTP/2 change it. @throws ServeError
 * INVALID_ARGUMENT when a header has two values, of which the handler could read the other one, or when the
 * id is not one
 */
export function readSequence(lines: string, names: SequenceHeaders): SequenceRequest {
  const pieces = lines.split('\n')
  const id = soleValue(pieces, names.id)
  const start = soleValue(pieces, names.start)
  const end = soleValue(pieces, names.end)
  return {
    id: checkedId(id.value),
    first: isTrue(start.value),
    last: isTrue(end.value),
    more: id.more + start.more + end.more,
  }
}

interface SoleValue {
  /** Undefined: there is none, or an empty one. */
  readonly value: string | undefined
  /** The line to add if not all of the header's lines have the exact name and the value. */
  readonly more: string
}

/** @throws ServeError INVALID_ARGUMENT */
function soleValue(pieces: readonly string[], name: string): SoleValue {
  const wanted = name.toLowerCase()
  let value: string | undefined
  let exact = true
  for (let i = 0; i + 1 < pieces.length; i += 2) {
    const found = pieces[i]!
    if (found.length !== wanted.length || found.toLowerCase() !== wanted) continue
    const other = pieces[i + 1]!
    if (found !== name || other === '') exact = false
    if (other === '') continue
    if (value !== undefined && value !== other)
      throw new ServeError('INVALID_ARGUMENT', `The header ${name} must be there once, but has two values`)
    value = other
  }
  return { value, more: exact || value === undefined ? '' : headerLine(name, value) }
}

/** What would end an id within the header with which a handler ends sequences, or be cut off there. */
const UNFIT = /[;\p{Cc}]|^\s|\s$/u

/** The id as a string of its own: what is cut from a string keeps the whole of it, here all headers. */
function checkedId(id: string | undefined): string | undefined {
  if (id === undefined || id === '') return undefined
  if (id.length > MAX_ID_LENGTH)
    throw new ServeError(
      'INVALID_ARGUMENT',
      `The id of a sequence must have at most ${MAX_ID_LENGTH} characters`,
    )
  if (UNFIT.test(id)) throw unfitId()
  return Buffer.from(id).toString()
}

/**
 * The header line for an id that came in another way. @throws ServeError INVALID_ARGUMENT for a line feed,
 * which no header can hold
 */
export function sequenceIdLine(id: string, names: Pick<SequenceHeaders, 'id'>): string {
  if (id.includes('\n')) throw unfitId()
  return headerLine(names.id, id)
}

function unfitId(): ServeError {
  return new ServeError(
    'INVALID_ARGUMENT',
    'The id of a sequence must have no semicolon, no control character, and no blank at either end',
  )
}

/** An id for a sequence whose client gave none. */
export function newSequenceId(): string {
  return `ts-seq-${randomUUID()}`
}

/** Adds to the headers for the handler what it has to find; for a sequence without id its id and start. */
export function writeSequence(
  request: JobRequest,
  asked: SequenceRequest,
  id: string,
  names: SequenceHeaders,
): void {
  request.headers += asked.more
  if (asked.id !== undefined) return
  request.headers += headerLine(names.id, id) + headerLine(names.start, 'true')
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
