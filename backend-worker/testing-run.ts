import { ServeError } from '../common/errors.ts'
import { itemCost } from '../protocol/credit-stream.ts'
import type { InputPart } from '../common/handler-methods.ts'
import type { FromWorker, LogMessage, MetricKind } from '../protocol/messages.ts'
import type { Outlet } from './outlet.ts'
import { exactJson } from '../common/exact-json.ts'

/** Called with each intermediate response. Its result is awaited before the handler gets credit. */
export type OnItem = (item: string, requestIndex: number) => void | Promise<void>

/** The response to one request. */
export interface TestResponse {
  /**
   * The status, 200 unless the handler set another; undefined if the request failed before its first item.
   */
  status: number | undefined
  contentType: string | undefined
  headers: Record<string, string>
  /** The streamed items as text, and the last item unless it is empty. */
  items: string[]
  /** The same as bytes, concatenated. */
  body: Buffer
  streamed: boolean
  /** Why the request failed. */
  error: ServeError | undefined
}

/** One reported metric value. */
export interface TestMetric {
  name: string
  kind: MetricKind
  unit: string
  value: number
  dimensions: Record<string, string>
  /** Separated by commas; empty: no request. */
  requestIds: string
}

export interface RunResult {
  responses: TestResponse[]
  logs: LogMessage[]
  metrics: TestMetric[]
}

/** Acts as the frontend. */
export class TestRun implements Outlet {
  readonly unsentBytes = 0

  /** Tests need no early flush. */
  flush(): undefined {
    return undefined
  }

  flushEarly(): undefined {
    return undefined
  }
  readonly result: RunResult
  onCredit: (id: number, bytes: number) => void = () => undefined
  readonly #onItem: OnItem | undefined

  constructor(requests: number, onItem: OnItem | undefined) {
    this.#onItem = onItem
    const responses = Array.from({ length: requests }, emptyResponse)
    this.result = { responses, logs: [], metrics: [] }
  }

  send(message: FromWorker): void {
    if (message.type === 'log') this.result.logs.push(message)
    else if (message.type === 'metric') this.#measure(message)
    else if (message.type === 'failure') {
      this.result.responses[message.id]!.error = ServeError.fromWire(message.error)
    } else if (message.type === 'response') this.#respond(message)
  }

  sendItem(id: number, body: Uint8Array): void {
    this.#respond({ type: 'response', id, body, ts_stream_next: 'true' })
  }

  #measure({ name, kind, unit, dimensions, values, requestIds }: FromWorker & { type: 'metric' }): void {
    values.forEach((value, index) => {
      this.result.metrics.push({ name, kind, unit, value, dimensions, requestIds: requestIds[index] ?? '' })
    })
  }

  #respond(message: FromWorker & { type: 'response' }): void {
    const response = this.result.responses[message.id]!
    if (response.status === undefined) {
      response.status = message.status ?? 200
      response.contentType = message.contentType
      response.headers = message.headers ?? {}
    }
    const body = Buffer.from(message.body)
    if (body.byteLength > 0 || message.ts_stream_next === 'true') response.items.push(body.toString())
    response.body = Buffer.concat([response.body, body])
    response.streamed = message.ts_stream_next !== undefined
    if (message.ts_stream_next === 'true') void this.#read(message.id, body)
  }

  async #read(id: number, body: Buffer): Promise<void> {
    await this.#onItem?.(body.toString(), id)
    this.onCredit(id, itemCost(body.byteLength))
  }
}

function emptyResponse(): TestResponse {
  return {
    status: undefined,
    contentType: undefined,
    headers: {},
    items: [],
    body: Buffer.alloc(0),
    streamed: false,
    error: undefined,
  }
}

/** A value of a request: a string is sent as text, bytes as binary, anything else as JSON. */
export type TestInput =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | readonly TestInput[]
  | { readonly [key: string]: TestInput }

/** The part that a client would send for the value. */
export function toPart(name: string, value: TestInput): InputPart {
  if (value instanceof Uint8Array) return { name, data: value }
  if (typeof value === 'string') return { name, contentType: 'text/plain', data: Buffer.from(value) }
  return { name, contentType: 'application/json', data: Buffer.from(exactJson(value)) }
}
