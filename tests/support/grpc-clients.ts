import { join } from 'node:path'
import {
  credentials,
  loadPackageDefinition,
  type ChannelCredentials,
  type Client,
  type Metadata,
  type ServiceClientConstructor,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

const PROTO_DIR = join(import.meta.dirname, '..', '..', 'proto')

/** A client of a TorchServe service, with the methods that @grpc/grpc-js makes from the .proto files. */
function client(
  file: string,
  packageName: string,
  service: string,
  port: number,
  channel: ChannelCredentials = credentials.createInsecure(),
): Client {
  const Service = serviceOf(file, `${packageName}.${service}`)
  return new Service(`127.0.0.1:${port}`, channel, {
    'grpc.use_local_subchannel_pool': 1,
  })
}

const services = new Map<string, ServiceClientConstructor>()

/** Its class of clients, for which the proto file is read once. */
function serviceOf(file: string, fullName: string): ServiceClientConstructor {
  const key = `${file} ${fullName}`
  const known = services.get(key)
  if (known !== undefined) return known
  const definition = loadSync(join(PROTO_DIR, file), {
    keepCase: true,
    includeDirs: [PROTO_DIR],
    defaults: true,
  })
  let node: unknown = loadPackageDefinition(definition)
  for (const name of fullName.split('.')) node = (node as Record<string, unknown>)[name]
  services.set(key, node as ServiceClientConstructor)
  return node as ServiceClientConstructor
}

export function inferenceClient(port: number, channel?: ChannelCredentials): Client & InferenceMethods {
  return client(
    'inference.proto',
    'org.pytorch.serve.grpc.inference',
    'InferenceAPIsService',
    port,
    channel,
  ) as Client & InferenceMethods
}

export function managementClient(port: number, channel?: ChannelCredentials): Client & ManagementMethods {
  return client(
    'management.proto',
    'org.pytorch.serve.grpc.management',
    'ManagementAPIsService',
    port,
    channel,
  ) as Client & ManagementMethods
}

/**
 * A client of any service with untyped methods: each takes a message, options and a callback, or returns a
 * stream.
 */
export function anyClient(
  file: string,
  packageName: string,
  service: string,
  port: number,
): Client & AnyMethods {
  return client(file, packageName, service, port) as Client & AnyMethods
}

export function openInferenceClient(port: number): Client & AnyMethods {
  return anyClient(
    'open_inference_grpc.proto',
    'org.pytorch.serve.grpc.openinference',
    'GRPCInferenceService',
    port,
  )
}

/** `inference.GRPCInferenceService` with the streams of one of the peers. */
export function inferenceV2Client(
  port: number,
  kind: 'mlserver' | 'triton',
): Client & AnyMethods & V2Streams {
  const file = `inference/${kind}.proto`
  return anyClient(file, 'inference', 'GRPCInferenceService', port) as Client & AnyMethods & V2Streams
}

interface V2Streams {
  ModelStreamInfer: (...options: unknown[]) => GrpcDuplex<Message, Message>
}

export function healthClient(port: number): Client & AnyMethods {
  return anyClient('grpc/health/v1/health.proto', 'grpc.health.v1', 'Health', port)
}

export type Message = Record<string, unknown>
type AnyMethods = Record<string, Unary<Message, Message> & ServerStream<Message, Message>>

export interface PredictionsRequest {
  model_name: string
  model_version?: string
  input: Record<string, Buffer>
  sequence_id?: string
}

/** With proto-loader's defaults: absent messages are null. */
export interface PredictionResponse {
  prediction: Buffer
  sequence_id?: string
  status: { code: number; message: string; details: { type_url: string; value: Buffer }[] } | null
}

interface InferenceMethods {
  Ping: Unary<Record<string, never>, { health: string }>
  Predictions: Unary<PredictionsRequest, { prediction: Buffer }>
  StreamPredictions: ServerStream<PredictionsRequest, { prediction: Buffer }>
  StreamPredictions2: (...options: unknown[]) => GrpcDuplex<PredictionsRequest, PredictionResponse>
}

type ManagementMethods = Record<
  'DescribeModel' | 'ListModels' | 'RegisterModel' | 'ScaleWorker' | 'SetDefault' | 'UnregisterModel',
  Unary<Record<string, unknown>, { msg: string }>
>

type Unary<Request, Response> = (
  request: Request,
  ...rest: [...options: unknown[], callback: (error: GrpcError | null, response?: Response) => void]
) => { cancel(): void }

type ServerStream<Request, Response> = (request: Request, ...options: unknown[]) => GrpcStream<Response>

export interface GrpcError extends Error {
  code: number
  details: string
  metadata: Metadata
}

export interface GrpcStream<Response> extends AsyncIterable<Response> {
  cancel(): void
  pause(): void
  resume(): void
  on(event: 'data', listener: (message: Response) => void): this
  on(event: 'error', listener: (error: GrpcError) => void): this
  on(event: 'end', listener: () => void): this
  once(event: string, listener: (...args: unknown[]) => void): this
}

export interface GrpcDuplex<Request, Response> extends GrpcStream<Response> {
  write(request: Request): boolean
  /** Closes the client's side. */
  end(): void
}

/** A unary call as a promise; rejects with the grpc error. */
export function call<Request, Response>(
  target: object,
  method: Unary<Request, Response>,
  request: Request,
  ...options: unknown[]
): Promise<Response> {
  return new Promise((resolve, reject) => {
    method.call(target, request, ...options, (error: GrpcError | null, response?: Response) => {
      if (error) reject(error)
      else resolve(response!)
    })
  })
}

/** Reads a stream to its end: the messages, and the error it ended with, if any. */
export async function readAll<Response>(
  stream: GrpcStream<Response>,
): Promise<{ messages: Response[]; error?: GrpcError }> {
  const messages: Response[] = []
  return new Promise((resolve) => {
    stream.on('data', (message) => messages.push(message))
    stream.on('error', (error) => {
      resolve({ messages, error })
    })
    stream.on('end', () => {
      resolve({ messages })
    })
  })
}
