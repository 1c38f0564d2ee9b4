import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
  type GrpcObject,
  type ServiceClientConstructor,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { KIND, Link, type Receiver } from './link.ts'

/** Ceiling (c): grpc-js in front of the same worker. Arguments: the worker's socket, the .proto file. */

interface Request {
  input: Record<string, Buffer>
}
interface Response {
  prediction: Uint8Array
}

class UnaryReply implements Receiver {
  readonly #callback: sendUnaryData<Response>
  constructor(callback: sendUnaryData<Response>) {
    this.#callback = callback
  }
  item(): void {
    throw new Error('An item for a unary call')
  }
  last(chunk: Buffer, from: number, to: number): void {
    this.#callback(null, { prediction: chunk.subarray(from, to) })
  }
  flush(): void {
    // Nothing was kept back.
  }
}

class StreamReply implements Receiver {
  readonly #call: ServerWritableStream<Request, Response>
  constructor(call: ServerWritableStream<Request, Response>) {
    this.#call = call
  }
  item(chunk: Buffer, from: number, to: number): void {
    this.#call.write({ prediction: chunk.subarray(from, to) })
  }
  /** TorchServe sends a message for the empty last response of a stream as well. */
  last(chunk: Buffer, from: number, to: number): void {
    this.#call.write({ prediction: chunk.subarray(from, to) })
    this.#call.end()
  }
  flush(): void {
    // grpc-js has the messages already.
  }
}

const [socketPath, protoPath] = process.argv.slice(2) as [string, string]
const link = new Link(socketPath)
const loaded = loadPackageDefinition(loadSync(protoPath, { keepCase: true }))
const room = ['org', 'pytorch', 'serve', 'grpc', 'inference'].reduce(
  (object, name) => object[name] as GrpcObject,
  loaded,
)
const server = new Server()
server.addService((room['InferenceAPIsService'] as ServiceClientConstructor).service, {
  Predictions: (call: ServerUnaryCall<Request, Response>, callback: sendUnaryData<Response>) => {
    link.ask(KIND.whole, call.request.input['data']!, new UnaryReply(callback))
  },
  StreamPredictions: (call: ServerWritableStream<Request, Response>) => {
    link.ask(KIND.stream, call.request.input['data']!, new StreamReply(call))
  },
})
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error
  process.stdout.write(`listening ${port}\n`)
})
