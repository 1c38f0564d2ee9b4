import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { rawRequest } from '../support/raw-http.ts'
import { startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

function doubling(modelStore: string): void {
  mkdirSync(join(modelStore, 'doubling'))
  const handler = 'export const handle = (rows) => rows.map((row) => (row.data ?? [row]).map((n) => 2 * n))\n'
  writeFileSync(join(modelStore, 'doubling', 'handler.mjs'), handler)
}

test('service_envelope opens the requests of every route and closes their answers', async () => {
  const modelStore = tempDir()
  doubling(modelStore)
  const server = await startServer({
    ...{ modelStore, models: ['doubling'], config: { service_envelope: 'kservev2' } },
  })
  const ask = async (path: string, request: unknown): Promise<[number, unknown]> => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(request)
    const answer = await rawRequest(server.ports.inference, path, { method: 'POST', headers, body })
    return [answer.status, JSON.parse(answer.body)]
  }
  const request = { id: 'mine', inputs: [{ name: 'x', shape: [2], datatype: 'INT64', data: [1, 2] }] }
  const answer = {
    ...{ id: 'mine', model_name: 'doubling', model_version: '1.0' },
    outputs: [{ name: 'x', shape: [2], datatype: 'INT64', data: [2, 4] }],
  }
  expect(await ask('/v2/models/doubling/infer', request)).toEqual([200, answer])
  expect(await ask('/predictions/doubling', request)).toEqual([200, answer])
  expect(await ask('/predictions/doubling', { instances: [1] })).toEqual([
    400,
    { code: 400, type: expect.any(String), message: 'The request must have a list "inputs"' },
  ])
})

test('the manifest names the envelope where the configuration does not', async () => {
  const modelStore = tempDir()
  doubling(modelStore)
  mkdirSync(join(modelStore, 'doubling', 'MAR-INF'))
  const model = { modelName: 'doubling', modelVersion: '1.0', handler: 'handler.mjs', envelope: 'kserve' }
  const manifest = JSON.stringify({ runtime: 'node', model })
  writeFileSync(join(modelStore, 'doubling', 'MAR-INF', 'MANIFEST.json'), manifest)
  const server = await startServer({ modelStore, models: ['doubling'] })
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ instances: [1, 2] })
  const answer = await rawRequest(server.ports.inference, '/v1/models/doubling:predict', { headers, body })
  expect(JSON.parse(answer.body)).toEqual({ predictions: [[2], [4]] })
})

test('a model does not load in an envelope that nobody knows', async () => {
  const modelStore = tempDir()
  doubling(modelStore)
  const server = await startServer({ modelStore, config: { service_envelope: 'kserve3' } })
  const path = '/models?url=doubling&initial_workers=1&synchronous=true'
  const { status, json } = await server.manage('POST', path)
  expect(status).toBe(500)
  expect(JSON.stringify(json)).toContain('service_envelope \\"kserve3\\" is not supported')
})
