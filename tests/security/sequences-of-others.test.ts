import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Metadata } from '@grpc/grpc-js'
import { writeApiKeys } from '../support/api-keys.ts'
import { inferenceClient, readAll } from '../support/grpc-clients.ts'
import { modelFolder } from '../support/model-folder.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

let server: Server
let client: ReturnType<typeof inferenceClient>

beforeAll(async () => {
  const sequences = { sequenceBatching: true, maxNumSequence: 500, sequenceMaxIdleMSec: 60_000 }
  const keys = ['ann', 'bob'].map((name) => ({ name, scopes: ['inference', 'management'] }))
  server = await startServer({
    models: [modelFolder('sums', 'sequences', sequences)],
    flags: ['--disable-token-auth'],
    config: { api_keys_file: writeApiKeys(keys) },
  })
  await server.until(
    () => ask('ann', '1', 'first'),
    (answer) => answer.startsWith('200'),
  )
  client = inferenceClient(server.ports.grpcInference)
})

afterAll(() => client.close())

async function ask(
  key: string,
  body: string,
  id: string,
  more: Record<string, string> = {},
): Promise<string> {
  const headers = {
    authorization: `Bearer tsk_${key}`,
    'content-type': 'text/plain',
    ts_request_sequence_id: id,
    ...more,
  }
  const { status, body: answer } = await rawRequest(server.ports.inference, '/predictions/sums', {
    headers,
    body,
  })
  return `${status} ${answer}`
}

/** What a call of StreamPredictions2 with one message gets. */
async function say(key: string, id: string, data: string): Promise<string> {
  const metadata = new Metadata()
  metadata.set('authorization', `Bearer tsk_${key}`)
  const call = client.StreamPredictions2(metadata)
  const all = readAll(call)
  call.write({ model_name: 'sums', input: { data: Buffer.from(data) }, sequence_id: id })
  call.end()
  const { messages } = await all
  return messages.map(({ status, prediction }) => status?.message ?? prediction.toString()).join()
}

/** The same of a call of StreamPredictions. */
async function sayOnce(key: string, id: string, data: string): Promise<string> {
  const metadata = new Metadata()
  metadata.set('authorization', `Bearer tsk_${key}`)
  const message = { model_name: 'sums', input: { data: Buffer.from(data) }, sequence_id: id }
  const { messages, error } = await readAll(client.StreamPredictions(message, metadata))
  return error?.message ?? messages.map(({ prediction }) => prediction.toString()).join()
}

test('who knows the id of a sequence of another key neither reads nor changes nor ends it', async () => {
  expect(await ask('ann', '7', 'shared')).toBe('200 7')
  expect(await ask('bob', '1', 'shared')).toMatch(/^400 .*another API key/s)
  expect(await say('bob', 'shared', '0')).toMatch(/another API key/)
  expect(await ask('ann', '1', 'shared')).toBe('200 8')
  expect(await say('ann', 'shared', '1')).toBe('9')
})

test('a second id in another letter case does not lead past the check', async () => {
  expect(await ask('ann', '7', 'victim')).toBe('200 7')
  for (const id of ['victim', 'mine'])
    expect(await ask('bob', '1', id, { TS_Request_Sequence_Id: id === 'mine' ? 'victim' : 'mine' })).toMatch(
      /^400 .*The header ts_request_sequence_id must be there once/s,
    )
  expect(await ask('ann', '1', 'victim')).toBe('200 8')
})

test('an id that contains another one ends no sequence of another key', async () => {
  expect(await ask('ann', '7', 'account')).toBe('200 7')
  const refusal = /must have no semicolon, no control character, and no blank at either end/
  expect(await ask('bob', 'end', 'x0;account')).toMatch(/^400 .*no semicolon/s)
  expect(await ask('bob', 'end', 'account\u00a0')).toMatch(/^400 .*no blank at either end/s)
  for (const id of ['x0;account', 'account ', ' account', 'account\u3000', 'account\n', 'a\nb'])
    for (const said of [await say('bob', id, 'end'), await sayOnce('bob', id, 'end')])
      expect(said).toMatch(refusal)
  expect(await ask('ann', '1', 'account')).toBe('200 8')
})

test('the id of a sequence, which the server keeps, has at most 1,024 characters', async () => {
  expect(await ask('ann', '1', 'a'.repeat(1024))).toBe('200 1')
  expect(await ask('ann', '1', 'a'.repeat(1025))).toMatch(/^400 .*at most 1024 characters/s)
  expect(await say('ann', 'a'.repeat(3_500_000), '1')).toMatch(/at most 1024 characters/)
})
