import { join } from 'node:path'
import {
  credentials,
  loadPackageDefinition,
  InterceptingCall,
  type Interceptor,
  type InterceptorOptions,
  status as Status,
  type CallOptions,
  type Client,
  type ServiceClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import type { Asked, AskOptions, Dialect, End } from '../dialect.ts'

const PROTO = join(import.meta.dirname, '..', '..', '..', 'proto')
const LIMIT_MS = 30_000

/** A call whose messages are read one by one; of a unary call there is one. */
export interface Answering {
  on(event: 'data', listener: (message: unknown) => void): unknown
  on(event: 'error', listener: (error: ServiceError) => void): unknown
  on(event: 'end', listener: () => void): unknown
  pause(): unknown
  resume(): unknown
  cancel(): void
}

/** How a dialect over gRPC asks, and what a message of its answer says. */
export interface GrpcForm {
  readonly name: string
  readonly whole?: true
  readonly file: string
  /** Full name of the service. */
  readonly service: string
  readonly notFound: string
  call(client: Client, model: string, input: string, options: CallOptions): Answering
  /** Undefined: no item. Throws what the message says is an error. */
  textOf(message: unknown): string | undefined
}

export class GrpcDialect implements Dialect {
  readonly name: string
  readonly whole: boolean
  readonly http = false
  readonly notFound: string
  readonly #form: GrpcForm
  readonly #client: Client

  constructor(target: string, form: GrpcForm) {
    this.name = form.name
    this.whole = form.whole === true
    this.notFound = form.notFound
    this.#form = form
    const Service = serviceOf(form)
    this.#client = new Service(target, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 })
  }

  ask(
    model: string,
    input: string,
    { headers, leaveAfter, leaveAfterMs, stallUntil, pause, onItem }: AskOptions = {},
  ): Promise<Asked> {
    const items: { text: string; at: number }[] = []
    const interceptors = headers === undefined ? [] : [sending(headers)]
    const options = { deadline: new Date(Date.now() + LIMIT_MS), interceptors }
    const call = this.#form.call(this.#client, model, input, options)
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined
      const finish = (end: End, leftAt?: number): void => {
        clearTimeout(timer)
        resolve({ items, end, leftAt })
        if (end.kind !== 'finished') call.cancel()
      }
      const leave = (): void => finish({ kind: 'left' }, performance.now())
      if (leaveAfterMs !== undefined) timer = setTimeout(leave, leaveAfterMs)
      stallUntil?.addEventListener('abort', leave)
      call.on('error', (error: ServiceError) => finish(failure(error, items.length > 0)))
      call.on('end', () => finish({ kind: 'finished' }))
      call.on('data', (message: unknown) => {
        // Only after the first read: grpc-js buffers everything in memory for a call that was never read.
        if (stallUntil !== undefined) call.pause()
        try {
          const text = this.#form.textOf(message)
          if (text === undefined) return
          items.push({ text, at: performance.now() })
          onItem?.(items.length)
          if (items.length === leaveAfter) leave()
          else if (pause !== undefined) void paused(call, pause)
        } catch (error) {
          const { message } = error as Error
          finish(
            items.length > 0
              ? { kind: 'failed', message }
              : { kind: 'refused', status: 'error_message', message },
          )
        }
      })
    })
  }

  close(): void {
    this.#client.close()
  }
}

/** Adds metadata to a call, whatever its kind. */
function sending(headers: Readonly<Record<string, string>>): Interceptor {
  return (options: InterceptorOptions, next) =>
    new InterceptingCall(next(options), {
      start: (metadata, listener, begin) => {
        for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
        begin(metadata, listener)
      },
    })
}

async function paused(call: Answering, pause: () => Promise<void>): Promise<void> {
  call.pause()
  await pause()
  call.resume()
}

function failure({ code, details }: ServiceError, after: boolean): End {
  const status = Status[code]
  return after
    ? { kind: 'failed', message: `${status}: ${details}` }
    : { kind: 'refused', status, message: details }
}

const services = new Map<string, ServiceClientConstructor>()

/** Its class of clients, for which the proto file is read once. */
function serviceOf({ file, service }: GrpcForm): ServiceClientConstructor {
  const key = `${file} ${service}`
  const known = services.get(key)
  if (known !== undefined) return known
  const definition = loadSync(join(PROTO, file), { keepCase: true, includeDirs: [PROTO], oneofs: true })
  let node: unknown = loadPackageDefinition(definition)
  for (const name of service.split('.')) node = (node as Record<string, unknown>)[name]
  services.set(key, node as ServiceClientConstructor)
  return node as ServiceClientConstructor
}
