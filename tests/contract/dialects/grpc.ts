import { join } from 'node:path'
import {
  credentials,
  loadPackageDefinition,
  status as Status,
  type Client,
  type ClientReadableStream,
  type ServiceClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import type { Dialect, End, StreamOptions, Streamed } from '../dialect.ts'

const PROTO = join(import.meta.dirname, '..', '..', '..', 'proto')
const LIMIT_MS = 30_000

/** How a dialect over gRPC asks, and what a message of its answer says. */
export interface GrpcForm {
  readonly name: string
  readonly file: string
  /** Full name of the service. */
  readonly service: string
  readonly notFound: string
  call(client: Client, model: string, input: string, deadline: Date): ClientReadableStream<unknown>
  /** Undefined: no item. Throws what the message says is an error. */
  textOf(message: unknown): string | undefined
}

export class GrpcDialect implements Dialect {
  readonly name: string
  readonly http = false
  readonly notFound: string
  readonly #form: GrpcForm
  readonly #client: Client

  constructor(target: string, form: GrpcForm) {
    this.name = form.name
    this.notFound = form.notFound
    this.#form = form
    const definition = loadSync(join(PROTO, form.file), {
      keepCase: true,
      includeDirs: [PROTO],
      oneofs: true,
    })
    let node: unknown = loadPackageDefinition(definition)
    for (const name of form.service.split('.')) node = (node as Record<string, unknown>)[name]
    const Service = node as ServiceClientConstructor
    this.#client = new Service(target, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 })
  }

  stream(model: string, input: string, { leaveAfter, stallMs }: StreamOptions = {}): Promise<Streamed> {
    const items: { text: string; at: number }[] = []
    const call = this.#form.call(this.#client, model, input, new Date(Date.now() + LIMIT_MS))
    return new Promise((resolve) => {
      const finish = (end: End, leftAt?: number): void => {
        resolve({ items, end, leftAt })
        if (end.kind !== 'finished') call.cancel()
      }
      const leave = (): void => finish({ kind: 'left' }, performance.now())
      call.on('error', (error: ServiceError) => finish(failure(error, items.length > 0)))
      call.on('end', () => finish({ kind: 'finished' }))
      if (stallMs !== undefined) {
        call.pause()
        setTimeout(leave, stallMs)
        return
      }
      call.on('data', (message: unknown) => {
        try {
          const text = this.#form.textOf(message)
          if (text === undefined) return
          items.push({ text, at: performance.now() })
          if (items.length === leaveAfter) leave()
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

function failure({ code, details }: ServiceError, after: boolean): End {
  const status = Status[code]
  return after
    ? { kind: 'failed', message: `${status}: ${details}` }
    : { kind: 'refused', status, message: details }
}

interface InferMessage {
  outputs?: { contents?: { bytes_contents?: Buffer[] } }[]
  raw_output_contents?: Buffer[]
}

function inferRequest(model: string, input: string): object {
  const contents = { bytes_contents: [Buffer.from(input)] }
  return {
    model_name: model,
    id: 'contract',
    inputs: [{ name: 'data', datatype: 'BYTES', shape: [1], contents }],
  }
}

function inferText({ outputs = [], raw_output_contents: raw = [] }: InferMessage): string | undefined {
  const bytes = outputs[0]?.contents?.bytes_contents?.[0] ?? raw[0]?.subarray(4)
  return bytes === undefined || bytes.byteLength === 0 ? undefined : bytes.toString()
}

type Bidi = Client & {
  ModelStreamInfer(options: {
    deadline: Date
  }): ClientReadableStream<unknown> & { write(message: object): void; end(): void }
}

function callInfer(
  client: Client,
  model: string,
  input: string,
  deadline: Date,
): ClientReadableStream<unknown> {
  const call = (client as Bidi).ModelStreamInfer({ deadline })
  call.write(inferRequest(model, input))
  call.end()
  return call
}

export const STREAM_PREDICTIONS: GrpcForm = {
  name: 'TorchServe StreamPredictions',
  file: 'inference.proto',
  service: 'org.pytorch.serve.grpc.inference.InferenceAPIsService',
  // As in TorchServe.
  notFound: 'INTERNAL',
  call: (client, model, input, deadline) =>
    (
      client as Client & {
        StreamPredictions(request: object, options: object): ClientReadableStream<unknown>
      }
    ).StreamPredictions({ model_name: model, input: { data: Buffer.from(input) } }, { deadline }),
  textOf: (message) => {
    const { prediction } = message as { prediction?: Buffer }
    return prediction === undefined || prediction.byteLength === 0 ? undefined : prediction.toString()
  },
}

export const MLSERVER_STREAM: GrpcForm = {
  name: 'V2 ModelStreamInfer (MLServer)',
  file: 'inference/mlserver.proto',
  notFound: 'NOT_FOUND',
  service: 'inference.GRPCInferenceService',
  call: callInfer,
  textOf: (message) => inferText(message as InferMessage),
}

export const TRITON_STREAM: GrpcForm = {
  name: 'V2 ModelStreamInfer (Triton)',
  file: 'inference/triton.proto',
  notFound: 'error_message',
  service: 'inference.GRPCInferenceService',
  call: callInfer,
  textOf: (message) => {
    const { error_message: error, infer_response: response } = message as {
      error_message?: string
      infer_response?: InferMessage
    }
    if (error) throw new Error(error)
    return inferText(response ?? {})
  },
}
