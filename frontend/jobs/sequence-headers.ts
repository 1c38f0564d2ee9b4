import { randomUUID } from 'node:crypto'
import { headerLine, splitHeaders } from '../../common/header-lines.ts'
import { ownValue } from '../../common/own-keys.ts'
import type { Settings } from '../config/settings.ts'
import type { JobRequest } from './job.ts'
import type { ReplyHead } from './reply-sink.ts'

/** Names of the headers that speak of sequences (spec 5.1, ts_header_key_sequence_*). */
export interface SequenceHeaders {
  /** Which sequence a request belongs to, and its answer. */
  readonly id: string
  /** `true` on the first request of a sequence whose id the server chose. */
  readonly start: string
  /** On a request: `true` on the last one. On an answer: the ids of sequences that have ended, with semicolons between them. */
  readonly end: string
}

/** The settings that name them. */
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

/** What a request says about its sequence. */
export interface SequenceRequest {
  /** Undefined: none was given. */
  readonly id: string | undefined
  /** Whether the handler finds the id under its exact name. */
  readonly exact: boolean
  readonly last: boolean
}

/** Names of any letter case count: proxies and HTTP/2 change it. */
export function readSequence(lines: string, names: SequenceHeaders): SequenceRequest {
  const headers = splitHeaders(lines)
  const exact = ownValue(headers, names.id)
  const id = exact ?? anyCase(headers, names.id)
  const last = isTrue(anyCase(headers, names.end))
  return { id: id === '' ? undefined : id, exact: exact !== undefined && exact !== '', last }
}

/** The id of a sequence whose client gave none. */
export function newSequenceId(): string {
  return `ts-seq-${randomUUID()}`
}

/** Makes sure that the handler sees the id, and that a sequence without one has begun here. */
export function writeSequence(
  request: JobRequest,
  { id: given, exact }: SequenceRequest,
  id: string,
  names: SequenceHeaders,
): void {
  if (!exact) request.headers += headerLine(names.id, id)
  if (given === undefined) request.headers += headerLine(names.start, 'true')
}

/** The ids of sequences that a handler says have ended. */
export function endedSequences(headers: ReplyHead['headers'], names: SequenceHeaders): string[] {
  const value = anyCase(headers, names.end)
  return value === undefined ? [] : value.split(';').map((id) => id.trim())
}

/** The headers of an answer with its sequence's id, unless the handler has set it. */
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
