import { Metadata } from '@grpc/grpc-js'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { call, openInferenceClient, type GrpcError } from '../support/grpc-clients.ts'
import { predictWith, REQUEST, startGrpc, type RunningGrpc } from '../edge/grpc/start-grpc.ts'
import { HOSTILE_WORDS } from './hostile-words.ts'

let grpc: RunningGrpc
let client: ReturnType<typeof openInferenceClient>

beforeEach(async () => {
  grpc = await startGrpc({ openInferenceProtocol: true })
  client = openInferenceClient(grpc.port)
  grpc.models.onWork = (work) => work.respond('{}')
})

afterEach(async () => {
  client.close()
  await grpc.close()
})

/** A gRPC response or status; a call that stays open gives neither. */
function settled(work: Promise<unknown>): Promise<number> {
  return work.then(
    () => 0,
    (error: unknown) => (error as GrpcError).code,
  )
}

const tensor = (name: string, datatype: string): object => ({
  model_name: 'm',
  inputs: [{ name, datatype, shape: [1], contents: { int_contents: [1] } }],
})

const PLACES: [place: string, ask: (word: string) => Promise<unknown>][] = [
  ['an input', (word) => predictWith(grpc, { ...REQUEST, input: { [word]: Buffer.from('x') } })],
  ['a model', (word) => predictWith(grpc, { ...REQUEST, model_name: word })],
  ['a version', (word) => predictWith(grpc, { ...REQUEST, model_version: word })],
  [
    'a key of the metadata',
    (word) => {
      const metadata = new Metadata()
      metadata.set(word, 'x')
      return predictWith(grpc, REQUEST, metadata)
    },
  ],
  ['a tensor', (word) => call(client, client['ModelInfer']!, tensor(word, 'INT32') as never)],
  ['a datatype', (word) => call(client, client['ModelInfer']!, tensor('x', word) as never)],
]

test.each(PLACES)(
  'a hostile word as %s is answered or refused, and the server goes on',
  async (_place, ask) => {
    for (const word of HOSTILE_WORDS) expect(await settled(ask(word))).toEqual(expect.any(Number))
    expect(await settled(predictWith(grpc, REQUEST))).toBe(0)
    expect(grpc.logged).toEqual([])
  },
)

test('an unknown datatype is refused, whatever it is called', async () => {
  for (const word of HOSTILE_WORDS) {
    const work = call(client, client['ModelInfer']!, tensor('x', word) as never)
    expect([word, await settled(work)]).not.toEqual([word, 0])
  }
})
