import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server as HttpServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { createArchive } from '../../model-archiver/pack.ts'
import { ECHO } from '../support/count.ts'
import { call, inferenceClient, inferenceV2Client } from '../support/grpc-clients.ts'
import { freePorts } from '../support/ports.ts'
import { rawRequest } from '../support/raw-http.ts'
import { launchServer, REPOSITORY, type Server, started } from '../support/server-process.ts'
import { tempDir } from '../support/temp.ts'

let server: Server
let files: HttpServer

/** Sends an archive when the test says so. */
async function heldArchive(): Promise<{ url: string; asked: Promise<unknown>; release: () => void }> {
  const handler = join(REPOSITORY, 'model-store', 'echo', 'handler.ts')
  const folder = tempDir()
  await createArchive({ modelName: 'late', version: '1.0', handler, exportPath: folder })
  const waiting: ServerResponse[] = []
  files = createServer((_request, response) => void waiting.push(response)).listen(0, '127.0.0.1')
  const asked = once(files, 'request')
  await once(files, 'listening')
  return {
    url: `http://127.0.0.1:${(files.address() as AddressInfo).port}/late.mar`,
    asked,
    release: () => waiting.forEach((response) => response.end(readFileSync(join(folder, 'late.mar')))),
  }
}

afterEach(async () => {
  files.closeAllConnections()
  files.close()
  await server.stop('SIGKILL')
})

/** With one model that loads, and one that the test holds. */
async function launch(url: string): Promise<{ whole: Promise<Server> }> {
  const [inference, management, metrics, grpcInference, grpcManagement, openInference] = await freePorts(6)
  server = launchServer({
    folder: tempDir(),
    models: [ECHO, `late=${url}`],
    config: {
      inference_address: `http://127.0.0.1:${inference}`,
      management_address: `http://127.0.0.1:${management}`,
      metrics_address: `http://127.0.0.1:${metrics}`,
      grpc_inference_port: grpcInference!,
      grpc_management_port: grpcManagement!,
      open_inference_grpc_port: openInference!,
      allowed_urls: 'file://.*|http(s)?://.*',
    },
  })
  const whole = started(server)
  whole.catch(() => undefined)
  const [port, other] = [inference!, management!]
  Object.assign(server.ports, { inference: port, management: other, grpcInference, openInference })
  await server.until(
    () =>
      rawRequest(port, '/predictions/echo', { body: 'x' }).then(
        ({ status }) => status,
        () => 0,
      ),
    (status) => status === 200,
  )
  return { whole }
}

test('a server serves what is loaded, and answers 503 for models of the start that are still to come', async () => {
  const { url, asked, release } = await heldArchive()
  const { whole } = await launch(url)
  await asked
  const { inference, grpcInference, openInference } = server.ports
  const status = async (path: string, body?: string) => {
    const json = { 'content-type': 'application/json' }
    const options = body === undefined ? { method: 'GET' } : { body, headers: json }
    const answer = await rawRequest(inference, path, options)
    return [answer.status, answer.headers['retry-after']]
  }
  const chat = JSON.stringify({ model: 'late', messages: [{ role: 'user', content: 'x' }] })
  expect(await status('/predictions/late', 'x')).toEqual([503, '1'])
  expect(await status('/predictions/late/1.0', 'x')).toEqual([503, '1'])
  expect(await status('/v2/models/late/infer', '{"inputs":[]}')).toEqual([503, '1'])
  expect(await status('/v1/chat/completions', chat)).toEqual([503, '1'])
  expect(await status('/v2/models/late/ready')).toEqual([503, undefined])
  expect(await status('/v2/health/ready')).toEqual([503, undefined])
  expect(await status('/health')).toEqual([503, undefined])
  expect(await status('/v2/health/live')).toEqual([200, undefined])
  expect(await status('/ping')).toEqual([500, undefined])
  expect((await server.manage('GET', '/models/late')).status).toBe(503)
  expect((await server.manage('POST', `/models?url=${encodeURIComponent(url)}`)).status).toBe(503)
  const v2 = inferenceV2Client(openInference, 'mlserver')
  const own = inferenceClient(grpcInference)
  expect(await call(v2, v2['ServerReady']!, {})).toMatchObject({ ready: false })
  expect(await call(v2, v2['ModelReady']!, { name: 'late' })).toMatchObject({ ready: false })
  await expect(call(own, own.Predictions, { model_name: 'late', input: {} })).rejects.toMatchObject({
    code: 14,
  })
  release()
  await whole
  await server.ready('late')
  expect(await status('/predictions/late', 'x')).toEqual([200, undefined])
  expect(await status('/predictions/nobody', 'x')).toEqual([404, undefined])
  expect(await status('/v2/health/ready')).toEqual([200, undefined])
  expect(await status('/health')).toEqual([200, undefined])
  expect(await status('/ping')).toEqual([200, undefined])
  v2.close()
  own.close()
  expect(await server.stop()).toBe(0)
})

test('a model of the start that cannot be downloaded has failed, and is tried again until it can', async () => {
  const { url, asked, release } = await heldArchive()
  const { whole } = await launch(url)
  await asked
  const again = once(files, 'request')
  files.closeAllConnections()
  await whole
  await server.lines('Failed to load model: http:')
  const index = async () => {
    const { body } = await rawRequest(server.ports.inference, '/v2/repository/index', { body: '{}' })
    return (JSON.parse(body) as { name: string; reason: string }[]).find(({ name }) => name === 'late')
  }
  expect(await index()).toMatchObject({ reason: 'not loaded: its archive could not be downloaded' })
  await again
  release()
  await server.until(index, (found) => found?.reason === '')
  expect((await rawRequest(server.ports.inference, '/predictions/late', { body: 'x' })).body).toBe('x')
})

test('a stop while models of the start load ends the server', async () => {
  const { url, asked } = await heldArchive()
  await launch(url)
  await asked
  expect(await server.stop()).toBe(0)
})
