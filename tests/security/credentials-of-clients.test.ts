import { expect, test } from '@jest/globals'
import { modelFolder } from '../support/model-folder.ts'
import { answerOf } from '../support/python/client.ts'
import { startServer } from '../support/server.ts'

const HEADERS = { Authorization: 'Bearer mine', Cookie: 'a=b', 'X-Api-Key': 'c' }

test.each([
  ['none', []],
  ['authorization,x-api-key', ['authorization', 'x-api-key']],
])('handlers get the headers with credentials that handler_credentials=%s names', async (names, arrive) => {
  // What a model says of it has no effect.
  const models = [modelFolder('probe', 'probing', { sandbox: { headers: ['authorization', 'cookie'] } })]
  const server = await startServer({ models, config: { handler_credentials: names } })
  await server.ready('probe')
  const { got } = await answerOf<{ got: string[] }>(server, 'probe', { attempt: 'headers' }, HEADERS)
  expect(
    got.map((name) => name.toLowerCase()).filter((name) => /authorization|cookie|key/.test(name)),
  ).toEqual(arrive)
})
