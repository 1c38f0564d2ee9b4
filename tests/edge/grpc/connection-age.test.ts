import { once } from 'node:events'
import { connect, type ClientHttp2Session } from 'node:http2'
import { afterEach, expect, test } from '@jest/globals'
import { status as Status } from '@grpc/grpc-js'
import { TIMES } from '../../../frontend/edge/grpc/limits.ts'
import { readAll } from '../../support/grpc-clients.ts'
import { RawClient, readBytes } from './raw-client.ts'
import { REQUEST, startGrpc, streamWith, type RunningGrpc } from './start-grpc.ts'

const AGE_MS = 100
/** Long enough for a call and its first item on a busy machine. */
const GRACE_MS = 1_500

let grpc: RunningGrpc
let session: ClientHttp2Session | undefined
const raws: RawClient[] = []

afterEach(async () => {
  session?.destroy()
  session = undefined
  await Promise.all(raws.splice(0).map((raw) => raw.close()))
  await grpc.close()
})

async function connected(port: number): Promise<ClientHttp2Session> {
  session = connect(`http://127.0.0.1:${port}`)
  await once(session, 'connect')
  return session
}

test.each([
  ['inference', { grpcInferenceMaxConnectionAgeMs: AGE_MS }],
  ['management', { grpcManagementMaxConnectionAgeMs: AGE_MS }],
])('a connection to the %s API is told to go after its age', async (which, settings) => {
  grpc = await startGrpc(settings)
  const aged = await connected(which === 'inference' ? grpc.port : grpc.managementPort)
  await once(aged, 'goaway')
})

test('the other API keeps its connections', async () => {
  grpc = await startGrpc({ grpcInferenceMaxConnectionAgeMs: AGE_MS })
  const kept = await connected(grpc.managementPort)
  let gone = false
  kept.on('goaway', () => (gone = true))
  const aged = connect(`http://127.0.0.1:${grpc.port}`)
  await once(aged, 'goaway')
  aged.destroy()
  expect(gone).toBe(false)
})

test('a running call may end within the grace, and is broken after it', async () => {
  grpc = await startGrpc({
    grpcInferenceMaxConnectionAgeMs: AGE_MS,
    grpcInferenceMaxConnectionAgeGraceMs: GRACE_MS,
  })
  const next = grpc.models.nextWork()
  const reading = readAll(streamWith(grpc, REQUEST))
  const work = await next
  work.respond('one', true)
  const { messages, error } = await reading
  expect([messages.length, error?.code]).toEqual([1, Status.UNAVAILABLE])
  expect(await work.abandoned).toBe('client left')
})

test('a connection is told to go when it has had no call for a while; open calls keep it', async () => {
  grpc = await startGrpc({}, { times: { ...TIMES, idleMs: 100 } })
  const [idle, busy] = [new RawClient(grpc.port), new RawClient(grpc.port)]
  raws.push(idle, busy)
  const first = grpc.models.nextWork()
  const stream = busy.stream()
  const work = await first
  grpc.models.onWork = (each) => each.respond('ok')
  await readBytes(busy.call('Predictions', {}))
  for (let calls = 0; calls < 3; calls++) await readBytes(idle.call('Predictions', {}))
  await idle.goaway()
  expect(busy.toldToGo).toBe(false)
  work.respond('end')
  await readBytes(stream)
  await busy.goaway()
})
