import { createHash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { inferenceClient, call, readAll, type GrpcError } from '../grpc-clients.ts'
import { rawRequest } from '../raw-http.ts'

/** A request to a model of {@link PYTHON_MODELS}, whose answer is compared with TorchServe's. */
export interface Exchange {
  readonly model: string
  /** Default: REST, /predictions. */
  readonly over?: 'rest' | 'explain' | 'describe' | 'grpc' | 'grpc-stream'
  /** REST: a header content-type, unless it is ''. */
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** What a client sees of a response, without what changes with every request. */
export interface SeenAnswer {
  /** HTTP status, or gRPC's code. */
  readonly status: number
  readonly type?: string
  /** Those that the handler set. */
  readonly headers?: Readonly<Record<string, string>>
  /** HTTP chunks or gRPC messages; one for a unary response. latin1 preserves every byte. */
  readonly parts: readonly string[]
}

const MAX_SHOWN = 2000
const ANSWER_LIMIT_MS = 20_000
const JSON_TYPE = 'application/json'
const wish = (what: string): Exchange => ({
  model: 'answers',
  type: JSON_TYPE,
  body: JSON.stringify({ wish: what }),
})

export const EXCHANGES: readonly Exchange[] = [
  { model: 'plain', type: JSON_TYPE, body: '{"a": [1, "ü"]}' },
  { model: 'plain', type: 'text/plain', body: 'some text' },
  { model: 'plain', type: 'application/octet-stream', body: 'bytes' },
  { model: 'plain', body: 'no type' },
  { model: 'plain', over: 'grpc', body: 'by gRPC' },
  ...['greet', 'head', 'bytes', 'many', 'raise', 'memory', 'cuda', 'reject', 'text', 'short', 'strange'].map(
    wish,
  ),
  ...['raise', 'reject'].map((what): Exchange => ({ ...wish(what), over: 'grpc-stream' })),
  { ...wish('greet'), over: 'grpc' },
  { ...wish('raise'), over: 'grpc' },
  { ...wish('greet'), over: 'explain' },
  { model: 'answers', over: 'describe' },
  { model: 'stream', body: '3' },
  { model: 'stream', type: 'text/plain', body: '0' },
  { model: 'stream', over: 'grpc-stream', body: '3' },
  { model: 'sums', body: '1', headers: { ts_request_sequence_id: 'a' } },
  { model: 'sums', body: '2', headers: { ts_request_sequence_id: 'a' } },
  { model: 'sums', body: '5', headers: { ts_request_sequence_id: 'b' } },
  { model: 'steps', body: '3' },
  { model: 'slowly', type: JSON_TYPE, body: '{"seconds": 0.01}' },
  { model: 'slowly', type: JSON_TYPE, body: '{"seconds": 0.05, "stream": true}' },
  { model: 'slowly', over: 'grpc', body: '{"seconds": 0.01}' },
  { model: 'slowly', over: 'grpc-stream', body: '{"seconds": 0.05, "stream": true}' },
]

/** One line that names it. */
export function exchangeName({ model, over = 'rest', type = '', body = '', headers = {} }: Exchange): string {
  const words = [model, over, type, body, ...Object.values(headers)]
  return words.filter((word) => word !== '').join(' ')
}

export interface InferencePorts {
  readonly inference: number
  readonly management: number
  readonly grpcInference: number
}

/** @throws Error when there is no answer in time */
export async function exchange(request: Exchange, ports: InferencePorts): Promise<SeenAnswer> {
  const late = new AbortController()
  const answer = exchangeNow(request, ports)
  const limit = wait(ANSWER_LIMIT_MS, undefined, { signal: late.signal }).then(() => {
    throw new Error(`No answer to: ${exchangeName(request)}`)
  })
  try {
    return await Promise.race([answer, limit])
  } finally {
    late.abort()
    limit.catch(() => undefined)
  }
}

async function exchangeNow(request: Exchange, ports: InferencePorts): Promise<SeenAnswer> {
  if (request.over === 'grpc' || request.over === 'grpc-stream') return overGrpc(request, ports.grpcInference)
  const { model, over = 'rest', type = '', headers = {}, body = '' } = request
  const typed = type === '' ? headers : { 'content-type': type, ...headers }
  if (over === 'describe') {
    const { status, body: text } = await rawRequest(ports.management, `/models/${model}?customized=true`, {
      method: 'GET',
    })
    const [description] = JSON.parse(text) as { customizedMetadata?: unknown }[]
    return { status, parts: [JSON.stringify(description?.customizedMetadata ?? null)] }
  }
  const path = over === 'explain' ? `/explanations/${model}` : `/predictions/${model}`
  const answer = await rawRequest(ports.inference, path, { headers: typed, body })
  const own = Object.entries(answer.headers).filter(([name]) => name.startsWith('x-wish'))
  return {
    status: answer.status,
    type: answer.headers['content-type'],
    headers: Object.fromEntries(own),
    parts: answer.chunks.length > 0 ? answer.chunks.map(latin) : [latin(Buffer.from(answer.body))],
  }
}

async function overGrpc(request: Exchange, port: number): Promise<SeenAnswer> {
  const client = inferenceClient(port)
  const message = {
    model_name: request.model,
    input: { data: Buffer.from(request.body ?? '') },
  }
  try {
    if (request.over === 'grpc') {
      const { prediction } = await call(client, client.Predictions, message)
      return { status: 0, parts: [latin(prediction)] }
    }
    const { messages, error } = await readAll(client.StreamPredictions(message))
    const parts = messages.map(({ prediction }) => latin(prediction))
    return error === undefined
      ? { status: 0, parts }
      : { status: error.code, parts: [...parts, error.details] }
  } catch (error) {
    return { status: (error as GrpcError).code, parts: [(error as GrpcError).details] }
  } finally {
    client.close()
  }
}

/** Long parts are replaced by their digest. */
function latin(bytes: Buffer): string {
  if (bytes.length <= MAX_SHOWN) return bytes.toString('latin1')
  return `${bytes.length} bytes, SHA-256 ${createHash('sha256').update(bytes).digest('hex')}`
}
