import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createArchive } from '../../model-archiver/pack.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const HANDLER = "export const handle = (requests) => requests.map(() => 'hello')\n"

let archive: Buffer
let archivePath: string
let origin: string
let web: HttpServer
/** Ends pending responses: /slow/ waits for it. */
let finish: () => void = () => undefined

beforeAll(async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'handler.mjs'), HANDLER)
  archivePath = await createArchive({
    ...{ modelName: 'hello', version: '1.0', handler: join(folder, 'handler.mjs'), exportPath: folder },
  })
  archive = readFileSync(archivePath)
  web = createServer((request, response) => {
    if (request.url!.startsWith('/slow/')) {
      response.write(archive.subarray(0, 10))
      finish = () => response.end(archive.subarray(10))
      web.emit('slow')
    } else if (request.url!.startsWith('/nothing/')) {
      response.writeHead(404).end()
    } else if (request.url!.startsWith('/far/')) {
      response.writeHead(302, { location: 'http://elsewhere.invalid/hello.mar' }).end()
    } else {
      response.end(archive)
    }
  }).listen(0, '127.0.0.1')
  await once(web, 'listening')
  origin = `http://127.0.0.1:${(web.address() as AddressInfo).port}`
})

afterAll(() => {
  web.closeAllConnections()
  web.close()
})

function start(allowedUrls = `${origin.replaceAll('.', '\\\\.')}/.*`): Promise<Server> {
  return startServer({ config: allowedUrls === '' ? {} : { allowed_urls: allowedUrls } })
}

function store(server: Server): string[] {
  return readdirSync(join(server.folder, 'store'))
}

async function predict(server: Server, model: string): Promise<string> {
  return (await rawRequest(server.ports.inference, `/predictions/${model}`)).body
}

test('a model from a URL is downloaded into the store, served, and removed with the model', async () => {
  const server = await start()
  const url = `${origin}/models/hello.mar`
  const registered = await server.manage('POST', `/models?url=${url}&initial_workers=1`)
  expect(registered.json.status).toBe('Model "hello" Version: 1.0 registered with 1 initial workers')
  expect(store(server)).toEqual(['hello.mar'])
  expect((await server.describe('hello'))[0]!.modelUrl).toBe(url)
  expect(await predict(server, 'hello')).toBe('hello')

  expect((await server.manage('POST', `/models?url=${url}`)).json).toEqual({
    ...{ code: 500, type: 'InternalServerException', message: 'Model file already exists hello.mar' },
  })
  expect((await server.manage('POST', '/models?url=hello.mar')).json).toEqual({
    code: 409,
    type: 'ConflictStatusException',
    message: 'Model version 1.0 is already registered for model hello',
  })
  await server.manage('DELETE', '/models/hello')
  expect(store(server)).toEqual([])
  await server.stop()
})

test('while a model is downloaded the server answers others, and a second download of the file fails at once', async () => {
  const server = await start()
  await server.manage('POST', `/models?url=${origin}/hello.mar&model_name=first&initial_workers=1`)
  await server.manage('DELETE', '/models/first')
  const slow = once(web, 'slow')
  const registered = server.manage('POST', `/models?url=${origin}/slow/hello.mar&initial_workers=1`)
  await slow
  const local = await server.manage(
    'POST',
    `/models?url=${origin}/other.mar&model_name=other&initial_workers=1`,
  )
  expect(local.status).toBe(200)
  expect(await predict(server, 'other')).toBe('hello')
  const second = await server.manage('POST', `/models?url=${origin}/slow/hello.mar`)
  expect(second.json.message).toBe('Model file already exists hello.mar')
  finish()
  expect((await registered).status).toBe(200)
  expect(await predict(server, 'hello')).toBe('hello')
  await server.stop()
})

test('a server that stops calls its downloads off and leaves nothing of them', async () => {
  const server = await start()
  const slow = once(web, 'slow')
  const registered = server.manage('POST', `/models?url=${origin}/slow/hello.mar`)
  await slow
  expect(await server.stop()).toBe(0)
  expect((await registered).status).toBe(503)
  expect(store(server)).toEqual([])
})

test('URLs that are not allowed, lead to one that is not, or lead up, are refused', async () => {
  const server = await start()
  const refused = {
    'http://example.invalid/x.mar':
      'Given URL http://example.invalid/x.mar does not match any allowed URL(s)',
    [`${origin}/far/hello.mar`]:
      'Given URL http://elsewhere.invalid/hello.mar does not match any allowed URL(s)',
    [`${origin}/../x.mar`]: `Relative path is not allowed in url: ${origin}/../x.mar`,
    [pathToFileURL(archivePath).href]:
      `Given URL ${pathToFileURL(archivePath).href} does not match any allowed URL(s)`,
  }
  for (const [url, message] of Object.entries(refused)) {
    const { json } = await server.manage('POST', `/models?url=${url}`)
    expect(json).toEqual({ code: 404, type: 'ModelNotFoundException', message })
  }
  expect(store(server)).toEqual([])
  await server.stop()
})

test('a workflow is downloaded under the same rules', async () => {
  const server = await start()
  const { json } = await server.manage('POST', `/workflows?url=${origin}/hello.mar`)
  expect(json).toMatchObject({ code: 400, type: 'InvalidWorkflowException' }) // it came, and is none
  expect(store(server)).toEqual([])
  await server.stop()
  const careful = await start('')
  expect((await careful.manage('POST', `/workflows?url=${origin}/hello.mar`)).json).toMatchObject({
    type: 'DownloadArchiveException',
  })
  await careful.stop()
})

test('unless allowed_urls is set, nobody can make the server ask its own machine; the operator can', async () => {
  const server = await start('')
  expect((await server.manage('POST', `/models?url=${origin}/hello.mar`)).json).toEqual({
    code: 400,
    type: 'DownloadArchiveException',
    message:
      `Failed to download archive from: ${origin}/hello.mar: its address is loopback or private; ` +
      'the operator allows such addresses with allowed_urls or allow_private_urls=true',
  })
  expect(await server.lines('Failed to download')).toEqual([
    expect.stringMatching(
      /hello\.mar: its address is loopback .* allow_private_urls=true: it is 127\.0\.0\.1$/,
    ),
  ])
  await server.stop()
  const own = await startServer({ models: [`${origin}/hello.mar`] })
  await own.ready('hello')
  expect(await predict(own, 'hello')).toBe('hello')
  await own.stop()
})

test('the log has the cause of a failed download in one line, the answer says so; a start tells it at once', async () => {
  const server = await start('.*')
  const gone = `${origin}/nothing/gone.mar`
  const { headers } = await rawRequest(server.ports.management, `/models?url=${gone}`, { method: 'POST' })
  expect(headers['x-hint']).toBe('the log of the server has the cause')
  await server.manage('POST', `/workflows?url=${origin}/nothing/gone.war`)
  // The answer may come before the lines.
  const told = await server.until(
    () => Promise.resolve(server.output.filter((line) => line.includes('Failed to download'))),
    (lines) => lines.length === 2,
  )
  expect(told.map((line) => line.slice(line.indexOf('Failed')))).toEqual([
    `Failed to download archive from: ${gone}: the answer was 404`,
    `Failed to download archive from: ${origin}/nothing/gone.war: the answer was 404`,
  ])
  await server.stop()
  const asked = await startServer({ models: [gone] })
  await asked.lines(
    `Failed to load model: ${gone}: Failed to download archive from: ${gone}: the answer was 404`,
  )
  await asked.stop()
})

test('a file URL is used where it is, and stays there', async () => {
  const server = await start('file://.*')
  const url = pathToFileURL(archivePath).href
  expect((await server.manage('POST', `/models?url=${url}&initial_workers=1`)).status).toBe(200)
  await server.manage('DELETE', '/models/hello')
  expect(existsSync(archivePath)).toBe(true)
  await server.stop()
})

test('a downloaded model is there again after a restart, and its file goes when it is unregistered then', async () => {
  const config = { allowed_urls: `${origin}/.*` }
  const first = await startServer({ snapshots: true, config })
  await first.manage('POST', `/models?url=${origin}/hello.mar&initial_workers=1`)
  await first.stop()
  expect(store(first)).toEqual(['hello.mar'])
  const second = await startServer({ snapshots: true, folder: first.folder })
  await second.ready('hello')
  expect((await second.describe('hello'))[0]!.modelUrl).toBe(`${origin}/hello.mar`)
  await second.manage('DELETE', '/models/hello')
  expect(store(second)).toEqual([])
  await second.stop()
})

test('the key `models` chooses the default version and the workers of each, whatever the files are called', async () => {
  const modelStore = tempDir()
  for (const version of ['1.0', '2.0', '3.0']) {
    const handler = join(tempDir(), 'handler.mjs')
    writeFileSync(handler, HANDLER)
    const made = await createArchive({ modelName: 'mm', version, handler, exportPath: modelStore })
    renameSync(made, join(modelStore, `v${version}.mar`))
  }
  const models = {
    mm: { '2.0': { defaultVersion: true }, '1.0': { minWorker: 3 }, '3.0': { minWorkers: 2, maxWorkers: 4 } },
  }
  const server = await startServer({
    modelStore,
    models: ['all'],
    config: { models: JSON.stringify(models) },
  })
  const [standard] = await server.describe('mm')
  expect(standard!.modelVersion).toBe('2.0')
  const all = await server.describe('mm', '/all')
  expect(new Map(all.map((each) => [each.modelVersion, [each.minWorkers, each.maxWorkers]]))).toEqual(
    new Map([
      ['1.0', [3, 3]],
      ['2.0', [1, 1]],
      ['3.0', [2, 4]],
    ]),
  )
  await server.stop()
})

test('load_models=all takes archives, folders and SageMaker’s folders in a folder, under their own names', async () => {
  const modelStore = tempDir()
  for (const folder of ['my-model.v2', join('sage', 'inner'), '.hidden', '_private']) {
    mkdirSync(join(modelStore, folder), { recursive: true })
    writeFileSync(join(modelStore, folder, 'handler.mjs'), HANDLER)
  }
  writeFileSync(join(modelStore, 'hello.mar'), archive)
  writeFileSync(join(modelStore, 'broken.mar'), 'no archive')
  const server = await startServer({ modelStore, models: ['all'] })
  await server.lines('Failed to load model: broken.mar')
  const { json } = await server.manage('GET', '/models')
  const names = json.models!.map(({ modelName }) => modelName)
  expect(names).toEqual(['_private', 'hello', 'my-model.v2', 'sage', 'broken'])
  await server.ready('sage')
  expect(await predict(server, 'sage')).toBe('hello')
  await server.stop()
})
