import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll } from '@jest/globals'
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServiceClientConstructor,
  type ServiceDefinition,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Empty: it has none. */
  readonly parentId: string
  readonly name: string
  /** 1: internal, 2: server. */
  readonly kind: number
  /** 2: an error. */
  readonly status: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly milliseconds: number
  /** Nanoseconds since the epoch. */
  readonly start: bigint
  readonly end: bigint
  readonly events: readonly string[]
}

export interface ReceivedMetric {
  readonly name: string
  readonly sum?: { dataPoints: { asDouble: number; attributes: KeyValue[] }[]; isMonotonic: boolean }
  readonly gauge?: { dataPoints: { asDouble: number }[] }
  readonly histogram?: {
    dataPoints: { count: number; sum: number; bucketCounts: number[]; explicitBounds: number[] }[]
  }
}

const ends: (() => void)[] = []

afterAll(() => {
  for (const end of ends.splice(0)) end()
})

interface KeyValue {
  key: string
  value: Record<string, unknown>
}

/** What the exporters call a span in JSON. */
interface JsonSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  status?: { code?: number }
  attributes: KeyValue[]
  events?: { name: string }[]
  startTimeUnixNano: string
  endTimeUnixNano: string
}

interface JsonExport {
  resourceSpans?: { resource: { attributes: KeyValue[] }; scopeSpans: { spans: JsonSpan[] }[] }[]
  resourceMetrics?: { resource: { attributes: KeyValue[] }; scopeMetrics: { metrics: ReceivedMetric[] }[] }[]
}

const PROTO = join(import.meta.dirname, 'otlp.proto')

/** Spans of http/protobuf, as http/json has them. */
const decoded = ((): ((body: Buffer) => JsonExport) => {
  const definition = loadSync(PROTO, { longs: String, arrays: true })
  const service = definition['opentelemetry.proto.collector.trace.v1.TraceService'] as ServiceDefinition
  const { requestDeserialize } = service['Export']!
  return (body) => withHexIds(requestDeserialize(body) as JsonExport)
})()

/** In http/json, ids are hexadecimal digits, and not bytes. */
function withHexIds(sent: JsonExport): JsonExport {
  const spans = sent.resourceSpans?.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))
  for (const span of spans ?? [])
    for (const id of ['traceId', 'spanId', 'parentSpanId'] as const)
      span[id] = (span[id] as unknown as Buffer | undefined)?.toString('hex') ?? ''
  return sent
}

/** Receives what OpenTelemetry's exporters send over HTTP. It ends with the test file. */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = []
  /** Of the last export. */
  metrics: readonly ReceivedMetric[] = []
  readonly resource = new Map<string, unknown>()
  readonly metricsResource = new Map<string, unknown>()
  /** Each export: where it came, its content type, and its spans. Of metrics only JSON is read. */
  readonly exports: { readonly path: string; readonly type: string; readonly spans: number }[] = []
  readonly #server = createServer((req, res) => void this.#take(req).then((answer) => res.end(answer)))

  /** Variables that make a server export to it, soon: spans by http/protobuf, the default. */
  async start(): Promise<Record<string, string>> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    ends.push(() => {
      this.#server.closeAllConnections()
      this.#server.close()
    })
    return {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`,
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_METRIC_EXPORT_INTERVAL: '200',
    }
  }

  /** Waits until that many spans have come. */
  async received(count: number): Promise<void> {
    while (this.spans.length < count) await new Promise((resolve) => setTimeout(resolve, 5))
  }

  /** The spans of a trace whose request has ended, oldest parent first; waits for them. */
  async trace(isWanted: (span: ReceivedSpan) => boolean): Promise<readonly ReceivedSpan[]> {
    for (;;) {
      const root = this.spans.find(isWanted)
      if (root !== undefined) return this.spans.filter(({ traceId }) => traceId === root.traceId)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /** @returns the body of the answer */
  async #take(req: IncomingMessage): Promise<string> {
    const body = await buffer(req)
    const path = req.url!
    const type = req.headers['content-type']!
    const isJson = type === 'application/json'
    if (!isJson && path.endsWith('/metrics')) {
      this.exports.push({ path, type, spans: 0 })
      return ''
    }
    const sent = isJson ? (JSON.parse(body.toString()) as JsonExport) : decoded(body)
    const { resourceSpans = [], resourceMetrics = [] } = sent
    const before = this.spans.length
    for (const { resource, scopeSpans } of resourceSpans) {
      for (const { key, value } of resource.attributes) this.resource.set(key, plain(value))
      this.spans.push(...scopeSpans.flatMap(({ spans }) => spans.map(received)))
    }
    this.exports.push({ path, type, spans: this.spans.length - before })
    for (const { attributes } of resourceMetrics.map(({ resource }) => resource)) {
      for (const { key, value } of attributes) this.metricsResource.set(key, plain(value))
    }
    if (resourceMetrics.length > 0)
      this.metrics = resourceMetrics.flatMap((each) => each.scopeMetrics.flatMap(({ metrics }) => metrics))
    return isJson ? '{}' : ''
  }
}

function received(span: JsonSpan): ReceivedSpan {
  const start = BigInt(span.startTimeUnixNano)
  const end = BigInt(span.endTimeUnixNano)
  return {
    ...span,
    parentId: span.parentSpanId ?? '',
    status: span.status?.code ?? 0,
    attributes: Object.fromEntries(span.attributes.map(({ key, value }) => [key, plain(value)])),
    milliseconds: Number(end - start) / 1e6,
    start,
    end,
    events: span.events?.map(({ name }) => name) ?? [],
  }
}

function plain(value: Record<string, unknown>): unknown {
  const only = value['intValue'] === undefined ? Object.values(value)[0] : Number(value['intValue'])
  const { values } = (value['arrayValue'] ?? {}) as { values?: Record<string, unknown>[] }
  return values === undefined ? only : values.map(plain)
}

interface GrpcSpan {
  trace_id: Buffer
  name: string
}

interface GrpcExport {
  request: { resource_spans: { scope_spans: { spans: GrpcSpan[] }[] }[] }
}

/** Receives spans over gRPC, as names by trace id. It ends with the test file. */
export async function grpcReceiver(): Promise<{ endpoint: string; names: Map<string, string[]> }> {
  const definition = loadSync(PROTO, { keepCase: true, defaults: true })
  const root = loadPackageDefinition(definition) as unknown as {
    opentelemetry: { proto: { collector: { trace: { v1: { TraceService: ServiceClientConstructor } } } } }
  }
  const names = new Map<string, string[]>()
  const server = new Server()
  server.addService(root.opentelemetry.proto.collector.trace.v1.TraceService.service, {
    Export({ request }: GrpcExport, answer: (error: null, value: object) => void) {
      for (const { scope_spans: scopes } of request.resource_spans) {
        for (const span of scopes.flatMap(({ spans }) => spans)) {
          const id = span.trace_id.toString('hex')
          names.set(id, [...(names.get(id) ?? []), span.name])
        }
      }
      answer(null, {})
    },
  })
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    )
  })
  ends.push(() => server.forceShutdown())
  return { endpoint: `http://127.0.0.1:${port}`, names }
}
