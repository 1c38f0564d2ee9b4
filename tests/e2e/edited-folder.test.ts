import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { call, managementClient } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const folder = join(tempDir(), 'm')
let server: Server

function write(word: string): void {
  writeFileSync(
    join(folder, 'handler.ts'),
    `export const handle = (all: unknown[]) => all.map(() => '${word}')\n`,
  )
}

async function scale(workers: number): Promise<{ status: string; warnings?: string[] }> {
  const path = `/models/m?min_worker=${workers}&synchronous=true`
  const { status, body } = await rawRequest(server.ports.management, path, { method: 'PUT' })
  expect(status).toBe(200)
  return JSON.parse(body) as { status: string; warnings?: string[] }
}

beforeAll(async () => {
  mkdirSync(folder)
  write('old')
  server = await startServer({ models: [`m=${folder}`] })
  await server.ready('m')
})

test('workers that come after an edit run the code of the load, and the operator is told', async () => {
  expect(await scale(0)).toEqual({ status: 'Workers scaled to 0 for model: m' })
  write('new')
  const { warnings } = await scale(1)
  expect(warnings).toEqual([
    expect.stringMatching(/^The files of model m, version 1\.0, have changed since it was loaded/),
  ])
  expect((await rawRequest(server.ports.inference, '/predictions/m')).body).toBe('old')
  expect(readFileSync(join(server.folder, 'logs', 'ts_log.log'), 'utf8')).toContain(warnings![0])
  const client = managementClient(server.ports.grpcManagement)
  const request = { model_name: 'm', min_worker: 1, synchronous: true }
  const { msg } = await call(client, client.ScaleWorker, request)
  client.close()
  expect(msg).toContain(warnings![0])
})
