import { beforeAll, expect, test } from '@jest/globals'
import { countBody, countInput } from '../support/count.ts'
import { inferenceClient, inferenceV2Client } from '../support/grpc-clients.ts'
import { countFolder } from '../support/model-folder.ts'
import { RawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'

const GAP_S = 0.5
/** Much more than the sockets take. */
const STREAM = { n: 3200, size: 64 * 1024, delay: 0 }

let server: Server

beforeAll(async () => {
  server = await startServer({
    models: [
      countFolder('count', { maxConcurrency: 4, gapTimeout: GAP_S }),
      `tensors=${REPOSITORY}/tests/support/handlers/tensors`,
    ],
    config: { open_inference_grpc_port: 0, default_gap_timeout: GAP_S },
  })
  await Promise.all([server.ready('count'), server.ready('tensors')])
})

function ended(model: string, outcome: string): Promise<number> {
  return server.metric('torchserve_ts_requests_ended_total', { model_name: model, kind: 'stream', outcome })
}

async function expectStalled(model: string, count: number): Promise<void> {
  await server.until(
    () => ended(model, 'client_stalled'),
    (stalled) => stalled === count,
  )
  expect([await ended(model, 'timed_out'), await ended(model, 'failed')]).toEqual([0, 0])
  expect(await server.lines('the client did not read its answer or send its next input')).not.toEqual([])
  expect(server.output.filter((line) => line.includes('timed out: the handler'))).toEqual([])
}

test('a REST client that does not read is the one to blame for the end of its stream', async () => {
  const request = new RawRequest(
    server.ports.inference,
    '/predictions/count',
    countBody({ id: 'rest', ...STREAM }),
  )
  await request.gotChunks(1)
  request.socket.pause()
  await expectStalled('count', 1)
  request.destroy()
})

test('so is a gRPC client', async () => {
  const client = inferenceClient(server.ports.grpcInference)
  const stream = client.StreamPredictions(countInput({ id: 'grpc', ...STREAM }))
  const failed = new Promise((resolve) => stream.once('error', resolve))
  await new Promise<void>((resolve) =>
    stream.once('data', () => {
      stream.pause()
      resolve()
    }),
  )
  await expectStalled('count', 2)
  stream.resume()
  expect(String(await failed)).toContain(
    `Timed out after ${GAP_S} s: the client did not read its answer (gapTimeout)`,
  )
  client.close()
})

test('and a client that leaves a handler without its next input', async () => {
  const client = inferenceV2Client(server.ports.openInference, 'mlserver')
  const duplex = client.ModelStreamInfer()
  const failed = new Promise((resolve) => duplex.once('error', resolve))
  duplex.resume()
  const contents = { bytes_contents: [Buffer.from('one')] }
  const inputs = [{ name: 'text', shape: [1], datatype: 'BYTES', contents }]
  duplex.write({ model_name: 'tensors', id: 'i', inputs })
  expect(String(await failed)).toContain(
    `Timed out after ${GAP_S} s: the client sent no further input (gapTimeout)`,
  )
  await expectStalled('tensors', 1)
  client.close()
})
