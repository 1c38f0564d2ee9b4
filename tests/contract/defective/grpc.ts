import { join } from 'node:path'
import {
  Server,
  ServerCredentials,
  status as Status,
  type ServerWritableStream,
  type ServiceDefinition,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { STREAM_PREDICTIONS } from '../dialects/grpc-forms.ts'
import { GrpcDialect } from '../dialects/grpc.ts'
import { Runs, type Defect, type Reply, type Run } from './runs.ts'

const PROTO = join(import.meta.dirname, '..', '..', '..', 'proto')

interface Request {
  model_name: string
  input: { data: Buffer }
}
type Call = ServerWritableStream<Request, { prediction: Buffer }>

/** TorchServe's StreamPredictions. */
export class DefectiveGrpc {
  readonly dialect: GrpcDialect
  readonly #server: Server

  private constructor(server: Server, port: number) {
    this.#server = server
    this.dialect = new GrpcDialect(`127.0.0.1:${port}`, STREAM_PREDICTIONS)
  }

  static async start(defect?: Defect): Promise<DefectiveGrpc> {
    const runs = new Runs(defect)
    const { file, service } = STREAM_PREDICTIONS
    const loaded = loadSync(join(PROTO, file), { keepCase: true, includeDirs: [PROTO] })
    const server = new Server()
    server.addService(loaded[service] as ServiceDefinition, {
      StreamPredictions: (call: Call) => {
        const { model_name: model, input } = call.request
        void runs.answer(model, JSON.parse(input.data.toString()) as Run, replyOf(call))
      },
    })
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
        if (error === null) resolve(bound)
        else reject(error)
      })
    })
    return new DefectiveGrpc(server, port)
  }

  close(): Promise<void> {
    this.dialect.close()
    this.#server.forceShutdown()
    return Promise.resolve()
  }
}

function replyOf(call: Call): Reply {
  const left = new AbortController()
  call.on('cancelled', () => left.abort())
  const fail = (): void => {
    call.emit('error', { code: Status.INTERNAL, details: 'as asked' })
  }
  return {
    refuse: fail,
    item: (text) => call.write({ prediction: Buffer.from(text) }),
    fail,
    end: () => call.end(),
    drains: call,
    left: left.signal,
  }
}
