import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { beforeAll, expect, test } from '@jest/globals'
import type { GrpcListenerKind } from '../../frontend/dialects/grpc-dialect.ts'
import { grpcServices } from '../../frontend/dialects/grpc-servers.ts'
import { rpcsOf, type Rpc } from '../../frontend/edge/grpc/definitions.ts'
import { ECHO } from '../support/count.ts'
import { startServer, type Server } from '../support/server.ts'

const KINDS: GrpcListenerKind[] = ['inference', 'management', 'open-inference', 'triton']
const RPCS = KINDS.flatMap((kind) =>
  rpcsOf(grpcServices(kind, { openInferenceProtocol: true } as never)).map((rpc): [string, string, Rpc] => [
    kind,
    rpc.path,
    rpc,
  ]),
).filter(([, , { token }]) => token !== undefined)

const ports = new Map<string, number>()

beforeAll(async () => {
  const server: Server = await startServer({
    models: [ECHO],
    flags: ['--enable-model-api'],
    config: { ts_open_inference_protocol: true, open_inference_grpc_port: 0, triton_grpc_port: 0 },
  })
  const { grpcInference, grpcManagement, openInference, triton } = server.ports
  for (const [i, port] of [grpcInference, grpcManagement, openInference, triton].entries()) {
    ports.set(KINDS[i]!, port)
  }
})

/** A message whose first field is this name: all that name a model do it there. */
function naming(model: string): Buffer {
  return Buffer.concat([Buffer.from([10, model.length]), Buffer.from(model)])
}

/** Everything that a client without a right token sees of the answer. */
function answer(client: Client, { path, isStream }: Rpc, message: Buffer, token?: string): Promise<unknown> {
  const metadata = new Metadata()
  if (token !== undefined) metadata.set('authorization', token)
  const same = (bytes: Buffer): Buffer => bytes
  return new Promise((resolve) => {
    const duplex = isStream ? client.makeBidiStreamRequest(path, same, same, metadata) : undefined
    const call = duplex ?? client.makeServerStreamRequest(path, same, same, message, metadata)
    const seen: unknown[] = []
    call.on('metadata', (head: Metadata) => seen.push(head.getMap()))
    call.on('data', (data: Buffer) => seen.push(String(data)))
    call.on('error', ({ code, details, metadata: trailers }: ServiceError) => {
      const { date: _date, ...rest } = trailers.getMap()
      resolve({ code, details, rest, seen: seen.length })
    })
    call.on('end', () => resolve(seen))
    duplex?.write(message)
  })
}

test('there are rpcs on every listener', () => {
  expect(new Set(RPCS.map(([kind]) => kind))).toEqual(new Set(KINDS))
  expect(RPCS.length).toBeGreaterThan(25)
})

test.each(RPCS)('%s: %s answers the same whatever it names', async (kind, _path, rpc) => {
  // A connection of its own: one that only brings wrong tokens is closed after a hundred calls.
  const options = { 'grpc.use_local_subchannel_pool': 1 }
  const client = new Client(`127.0.0.1:${ports.get(kind)}`, credentials.createInsecure(), options)
  // The last is no message at all: it is not read either.
  const messages = [naming('echo'), naming('none'), naming('../../x'), Buffer.from([255, 255])]
  for (const token of [undefined, 'Bearer wrong']) {
    const answers = new Set<string>()
    for (const message of messages) answers.add(JSON.stringify(await answer(client, rpc, message, token)))
    expect([...answers]).toEqual([expect.stringMatching(/^\{"code":(7|16),"details":"[^"]*Token/)])
  }
  client.close()
})
