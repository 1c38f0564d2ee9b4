import { type HandlerRequest, PredictionException } from 'torchserve-ts'

/** Starts a run. */
export interface RunRequest {
  /** Name for queries; absent: the run cannot be queried. */
  id: string | undefined
  /** Number of items, default 10. */
  n: number
  /** Bytes of an item, default 0: its number and a newline. */
  size: number
  /** Milliseconds from one item to the next, default 100. */
  delay: number
  /** Makes items after the first on a {@link RunQuery} `next` instead of after `delay`. Default false. */
  gated: boolean
  /** Default true; false: all items in one answer. */
  stream: boolean
  /** Number of items after which the run fails; absent: never. */
  fail: number | undefined
}

/** Queries the progress of the named run; `next` first makes a gated run's next item. */
export interface RunQuery {
  query: 'produced' | 'next'
  id: string
}

type Fields = Record<string, unknown>

const NAMES = ['id', 'n', 'size', 'delay', 'gated', 'stream', 'fail', 'query'] as const
type Name = (typeof NAMES)[number]
const MAX_ITEMS = 1_000_000_000
/** 64 MiB; the server's default response limit is lower. */
const MAX_SIZE = 64 * 1024 * 1024
/** One day. */
const MAX_DELAY = 86_400_000
const MAX_ID_LENGTH = 200
const MAX_WHOLE_BYTES = 1024 * 1024

/** @throws PredictionException 400 that names the parameter */
export function readParameters(request: HandlerRequest): RunRequest | RunQuery {
  const fields = readFields(request)
  const unknown = Object.keys(fields).find((name) => !(NAMES as readonly string[]).includes(name))
  if (unknown !== undefined) {
    throw bad(`Parameter ${unknown.slice(0, 40)} is not supported; use ${NAMES.join(', ')}`)
  }
  const id = identifier(fields['id'])
  return fields['query'] === undefined ? run(fields, id) : query(fields['query'], id)
}

function run(fields: Fields, id: string | undefined): RunRequest {
  const n = whole(fields, 'n', 10, MAX_ITEMS)
  const size = whole(fields, 'size', 0, MAX_SIZE)
  const delay = whole(fields, 'delay', 100, MAX_DELAY)
  const gated = flag('gated', fields['gated'] ?? false)
  const stream = flag('stream', fields['stream'] ?? true)
  if (!stream && n * Math.max(size, 11) > MAX_WHOLE_BYTES) {
    throw bad(`Without stream, all items together must have at most ${MAX_WHOLE_BYTES} bytes`)
  }
  const fail = fields['fail'] === undefined ? undefined : whole(fields, 'fail', 0, MAX_ITEMS)
  return { id, n, size, delay, gated, stream, fail }
}

function query(kind: unknown, id: string | undefined): RunQuery {
  if (kind !== 'produced' && kind !== 'next') throw bad('query must be "produced" or "next"')
  if (id === undefined) throw bad('query requires the id of a run')
  return { query: kind, id }
}

function identifier(value: unknown): string | undefined {
  if (value === undefined) return undefined
  const id = typeof value === 'number' ? String(value) : value
  if (typeof id === 'string' && id !== '' && id.length <= MAX_ID_LENGTH) return id
  throw bad(`id must be a string of 1 to ${MAX_ID_LENGTH} characters`)
}

/** Forms and gRPC inputs contain numbers as text. */
function whole(fields: Fields, name: Name, absent: number, max: number): number {
  const given = fields[name] ?? absent
  const value = typeof given === 'string' && given.trim() !== '' ? Number(given) : given
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) return value
  throw bad(`${name} must be a whole number from 0 to ${max}`)
}

function flag(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  if (value === 'true' || value === 'false') return value === 'true'
  throw bad(`${name} must be true or false`)
}

function bad(message: string): PredictionException {
  return new PredictionException(message, 400)
}

/**
 * The named values of a request: a JSON object as body or as part `data` (bytes, text or decoded), and any
 * other parts (form fields, gRPC inputs) by name. The server adds `parameters` for language models.
 * @throws PredictionException 400
 */
function readFields(request: HandlerRequest): Record<string, unknown> {
  const { data, body, parameters: _generation, ...parts } = request
  const fields = Object.fromEntries(Object.entries(parts).map(([name, value]) => [name, decoded(value)]))
  return { ...fields, ...parsed(decoded(data ?? body)) }
}

function decoded(value: unknown): unknown {
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : value
}

function parsed(main: unknown): object | undefined {
  if (main === undefined || main === '') return undefined
  const value = typeof main === 'string' ? json(lastMessage(main)) : main
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new PredictionException('The body must be a JSON object', 400)
}

/** The user's last message, in a chat rendered by the server's default template (docs/openai.md). */
function lastMessage(text: string): string {
  return /(?:^|\n)User: ([^\n]*)\nAssistant:$/.exec(text)?.[1] ?? text
}

function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new PredictionException('The body must be valid JSON', 400)
  }
}
