import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  Client,
  credentials,
  loadPackageDefinition,
  Metadata,
  type MethodDefinition,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceClientConstructor,
  status as Status,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { ServeError } from '../../common/errors.ts'
import { callDeps, type GrpcCallDeps, type GrpcDialect } from '../../frontend/dialects/grpc-dialect.ts'
import type { ReplyHead, ReplySink } from '../../frontend/jobs/reply-sink.ts'
import type { RunningServer } from '../../frontend/server-api.ts'
import { startServer } from '../../frontend/server.ts'
import { GRPC_DIALECTS } from '../../frontend/dialects/index.ts'
import { encoderOf, loadService, withEncodedResponses } from '../../frontend/edge/grpc/definitions.ts'
import { deadlineOf, submitUnary } from '../../frontend/edge/grpc/metadata.ts'
import { callOf } from '../../frontend/edge/grpc/call.ts'
import { StreamCall } from '../../frontend/edge/grpc/stream-call.ts'
import { Job } from '../../frontend/jobs/job.ts'
import type { JobRequest } from '../../frontend/jobs/job-request.ts'
import { loadSettings } from '../../frontend/config/load-settings.ts'
import { createLogger } from '../../frontend/observe/logs/logger.ts'
import { COUNT } from '../support/count.ts'
import { tempDir } from '../support/temp.ts'

const PROTO = `syntax = "proto3";
package toy;
message Ask { string model = 1; int32 items = 2; }
message Said { bytes text = 1; }
service Toy {
  rpc Tell(Ask) returns (Said);
  rpc Count(Ask) returns (stream Said);
}
`

interface Ask {
  model?: string
  items?: number
}

const folder = tempDir()
writeFileSync(join(folder, 'toy.proto'), PROTO)
const service = loadService('toy.proto', 'toy.Toy', { folder })
const encode = encoderOf(service, 'Count')
const toCallError = (error: ServeError) => ({ code: Status.DATA_LOSS, details: `toy: ${error.code}` })

/** A service of one object: one item as the answer of a unary call, or each as a message. */
const toy: GrpcDialect = {
  listeners: ['inference'],
  facts: () => ({
    definition: withEncodedResponses(service, ['Count']),
    token: () => 'inference',
    toCallError,
  }),
  implement: (deps) => ({
    Tell: (call: ServerUnaryCall<Ask, object>, respond: sendUnaryData<object>) => tell(call, respond),
    Count: (call: ServerWritableStream<Ask, Buffer>) =>
      new CountReply(callDeps(deps, call), new StreamCall(call, deps.log), call.request),
  }),
}

function requestOf({ model = '', items = 1 }: Ask, stream: boolean): JobRequest {
  const parts = [{ name: 'body', data: Buffer.from(JSON.stringify({ n: items, stream })) }]
  return { requestId: 'toy', modelName: model, method: 'handle', headers: '', parts }
}

function tell(call: ServerUnaryCall<Ask, object>, respond: sendUnaryData<object>): void {
  const fail = (error: ServeError): void => respond(toCallError(error))
  const reply: ReplySink & { job: Job | undefined } = {
    job: undefined,
    whole: (_head: ReplyHead, body: Uint8Array) => respond(null, { text: Buffer.from(body) }),
    open: () => undefined,
    write: () => true,
    close: () => undefined,
    fail,
  }
  try {
    submitUnary(
      callOf(call).models,
      call,
      { ...requestOf(call.request, false), deadline: deadlineOf(call) },
      reply,
    )
  } catch (thrown) {
    fail(thrown as ServeError)
  }
}

class CountReply implements ReplySink {
  readonly #call: StreamCall

  constructor({ models }: GrpcCallDeps, call: StreamCall, ask: Ask) {
    this.#call = call
    const job = new Job({ ...requestOf(ask, true), deadline: call.deadline }, this)
    call.user = { drained: () => job.drained(), cancel: (reason) => job.cancel(reason) }
    try {
      models.submit(job)
    } catch (thrown) {
      this.fail(thrown as ServeError)
    }
  }

  whole(_head: ReplyHead, body: Uint8Array): void {
    this.write(body, 0, body.byteLength)
    this.close()
  }
  open(): void {
    const metadata = new Metadata()
    metadata.set('x-toy', '1')
    this.#call.sendHead(metadata)
  }
  write(chunk: Uint8Array, from: number, to: number): boolean {
    return this.#call.send(encode({ text: Buffer.from(chunk.subarray(from, to)) }))
  }
  close(): void {
    this.#call.end()
  }
  fail(error: ServeError): void {
    this.#call.fail(toCallError(error))
  }
}

let server: RunningServer
let client: Client &
  Record<'Tell' | 'Count', (...args: unknown[]) => NodeJS.EventEmitter & AsyncIterable<Said>>
let origin = ''

interface Said {
  text: Buffer
}

beforeAll(async () => {
  const home = tempDir()
  const config = join(home, 'config.properties')
  const lines = ['inference', 'management', 'metrics'].map((name) => `${name}_address=http://127.0.0.1:0`)
  const more = [`model_store=${home}`, `load_models=${COUNT}`, 'default_workers_per_model=1']
  const rest = ['grpc_inference_port=0', 'grpc_management_port=0', 'disable_token_authorization=true']
  writeFileSync(config, [...lines, ...more, ...rest, ''].join('\n'))
  const { settings } = await loadSettings({ tsConfig: config }, { TEMP: home })
  const { log } = createLogger({ level: 'error', format: 'text', console: undefined })
  const grpcDialects = [...GRPC_DIALECTS, toy]
  server = await startServer({ ...settings, tempDir: home }, { log, grpcDialects })
  const address = (name: string): string => server.listening.find((each) => each.name === name)!.address
  for (;;) {
    const answer = await fetch(`${address('Inference REST API')}/ping`)
    if (((await answer.json()) as { status: string }).status === 'Healthy') break
  }
  const definition = loadSync('toy.proto', { keepCase: true, includeDirs: [folder] })
  const { Toy } = loadPackageDefinition(definition)['toy'] as unknown as { Toy: ServiceClientConstructor }
  client = new Toy(address('Inference gRPC API'), credentials.createInsecure()) as unknown as typeof client
  origin = address('Inference gRPC API')
}, 60_000)

afterAll(async () => {
  client.close()
  await server.close()
})

function ask(request: Ask): Promise<Said> {
  return new Promise((resolve, reject) => {
    client.Tell(request, (error: Error | null, said: Said) =>
      error === null ? resolve(said) : reject(error),
    )
  })
}

test('a service of one object answers from a real model, whole', async () => {
  expect((await ask({ model: 'count', items: 1 })).text.byteLength).toBeGreaterThan(0)
})

test('and as a stream, item by item', async () => {
  const call = client.Count({ model: 'count', items: 3 })
  const heads: Metadata[] = []
  call.on('metadata', (metadata: Metadata) => heads.push(metadata))
  const said: string[] = []
  for await (const { text } of call) said.push(text.toString())
  expect(said.length).toBeGreaterThanOrEqual(3)
  expect(heads[0]!.get('x-toy')).toEqual(['1'])
})

test('its errors are its own', async () => {
  await expect(ask({ model: 'none' })).rejects.toMatchObject({
    code: Status.DATA_LOSS,
    details: 'toy: MODEL_NOT_FOUND',
  })
})

test('health and reflection know it by themselves', async () => {
  const channel = new Client(origin, credentials.createInsecure())
  const call = <Answer>(file: string, name: string, method: string, request: object): Promise<Answer> => {
    const { path, requestSerialize, responseDeserialize, requestStream } = loadService(file, name).definition[
      method
    ] as MethodDefinition<object, Answer>
    return new Promise((resolve, reject) => {
      if (requestStream) {
        const stream = channel.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
        stream.on('data', resolve).on('error', reject)
        stream.end(request)
      } else {
        channel.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error, answer) =>
          error === null ? resolve(answer!) : reject(error),
        )
      }
    })
  }
  const health = await call<{ status: unknown }>(
    'grpc/health/v1/health.proto',
    'grpc.health.v1.Health',
    'Check',
    {
      service: 'toy.Toy',
    },
  )
  expect(health.status).toBe(1)
  const listed = await call<{ list_services_response: { service: { name: string }[] } }>(
    'grpc/reflection/v1/reflection.proto',
    'grpc.reflection.v1.ServerReflection',
    'ServerReflectionInfo',
    { list_services: '' },
  )
  expect(listed.list_services_response.service.map(({ name }) => name)).toContain('toy.Toy')
  channel.close()
})
