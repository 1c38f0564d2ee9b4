import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { call, inferenceClient, type PredictionsRequest, readAll } from '../support/grpc-clients.ts'
import { Gate } from '../support/gate.ts'
import { modelFolder } from '../support/model-folder.ts'
import { startServer, type Server } from '../support/server.ts'

let server: Server
let client: ReturnType<typeof inferenceClient>

beforeAll(async () => {
  const sequences = {
    sequenceBatching: true,
    minWorkers: 2,
    maxWorkers: 2,
    maxNumSequence: 20,
    sequenceMaxIdleMSec: 60_000,
    maxSequenceJobQueueSize: 10,
  }
  server = await startServer({
    models: [
      modelFolder('sums', 'sequences', { ...sequences, batchSize: 4 }),
      modelFolder('streams', 'sequences', { ...sequences, continuousBatching: true }),
    ],
  })
  await Promise.all([server.ready('sums'), server.ready('streams')])
  client = inferenceClient(server.ports.grpcInference)
})

afterAll(() => client.close())

const message = (model: string, id: string | undefined, data: string): PredictionsRequest => ({
  model_name: model,
  input: { data: Buffer.from(data) },
  sequence_id: id,
})

test('two calls, each with its own sums, ids in the replies, drained after half-close', async () => {
  const sums = async (id: string): Promise<string[]> => {
    const stream = client.StreamPredictions2()
    const all = readAll(stream)
    const gate = new Gate()
    for (const data of ['1', `wait ${gate.path} 2`, '3']) stream.write(message('sums', id, data))
    stream.once('data', () => gate.open())
    stream.end()
    const { messages, error } = await all
    expect(error).toBeUndefined()
    expect(messages.map(({ sequence_id: told }) => told)).toEqual([id, id, id])
    return messages.map(({ prediction }) => prediction.toString())
  }
  expect(await Promise.all([sums('grpc-0'), sums('grpc-1')])).toEqual([
    ['1', '3', '6'],
    ['1', '3', '6'],
  ])
})

test('a refused message and a dead worker are statuses, the call goes on', async () => {
  const stream = client.StreamPredictions2()
  const all = readAll(stream)
  stream.write(message('sums', undefined, '1'))
  stream.write(message('nobody', 'x', '1'))
  const gate = new Gate()
  gate.open()
  stream.write(message('sums', 'grpc-crash', `crash ${gate.path}`))
  await server.until(
    () => server.describe('sums'),
    ([version]) => version!.workers.some(({ lastExit }) => lastExit !== undefined),
  )
  stream.write(message('sums', 'grpc-crash', '4'))
  stream.end()
  const { messages, error } = await all
  expect(error).toBeUndefined()
  expect(messages.map(({ status }) => status?.message)).toEqual([
    'Parameter sequenceId is required.',
    'Model not found: nobody',
    'Worker died.',
    undefined,
  ])
  expect(messages[3]!.prediction.toString()).toBe('4')
  await server.ready('sums')
})

test('cancelling the call takes its requests off the worker', async () => {
  const stream = client.StreamPredictions2()
  const all = readAll(stream)
  stream.write(message('streams', 'endless', '1'))
  stream.write(message('streams', 'endless', 'stream'))
  await new Promise<void>((resolve) => stream.once('data', () => resolve()))
  stream.cancel()
  await all
  await server.until(
    () => server.describe('streams'),
    ([version]) => version!.workers.every(({ inFlight }) => inFlight === 0),
  )
})

test('unary calls without an id do not hang', async () => {
  const { prediction } = await call(client, client.Predictions, message('sums', undefined, '9'))
  expect(prediction.toString()).toBe('9')
  for (const said of ['3', '6']) {
    const { messages } = await readAll(client.StreamPredictions(message('sums', 'unary', '3')))
    expect(messages.map((one) => one.prediction.toString())).toEqual([said])
  }
})
