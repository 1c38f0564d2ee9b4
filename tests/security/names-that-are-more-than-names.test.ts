import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { isName } from '../../common/names.ts'
import { checkManifest } from '../../model-archiver/manifest-schema.ts'
import { checkWorkflowManifest } from '../../model-archiver/workflow-manifest.ts'
import { createArchive } from '../../model-archiver/pack.ts'
import { managementClient } from '../support/grpc-clients.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** Sent over the wire, so each must fit a JSON text. */
const BAD = [
  '../../x',
  '..',
  'a..b',
  '.hidden',
  'a/b',
  'a\\b',
  'a b',
  '-rf',
  '__proto__',
  'x\u0000',
  'x\r\nHTTP/1.1 200 OK',
  '\u001b[31m',
  'größe',
  'a:b',
  '<script>',
  'x'.repeat(129),
  'x'.repeat(500_000),
]
const GOOD = [
  'm',
  'my-model.v2',
  '_private',
  'ResNet_18',
  '1.0',
  '2.0-rc1',
  '1.0+build.7',
  'x'.repeat(128),
  '1',
  'constructor',
]

const RULE = /must have 1 to 128 ASCII letters, digits and _ - \. \+ @/

test('the rule', () => {
  expect(GOOD.filter((name) => !isName(name))).toEqual([])
  expect(['', ...BAD].filter(isName)).toEqual([])
})

describe('archives', () => {
  const manifest = (modelName: string, modelVersion: string) => (): unknown =>
    checkManifest({ runtime: 'node', model: { modelName, modelVersion, handler: 'h' } })

  test.each(BAD)('no manifest calls its model or version %j', (name) => {
    expect(manifest(name, '1.0')).toThrow(RULE)
    expect(manifest('m', name)).toThrow(RULE)
    const workflow = { workflowName: name, specFile: 's' }
    const text = JSON.stringify({ workflow, archiverVersion: '1', createdOn: 'now' })
    expect(() => checkWorkflowManifest(text)).toThrow(RULE)
  })

  test.each(GOOD)('a manifest may call both %j', (name) => {
    expect(manifest(name, name)()).toMatchObject({ model: { modelName: name, modelVersion: name } })
  })
})

describe('a server', () => {
  const modelStore = tempDir()
  const handler = "export const handle = (requests) => requests.map(() => 'hello')\n"
  const asked: string[] = []
  let archive: Buffer
  let origin: string
  const web = createServer((request, response) => {
    asked.push(request.url!)
    response.end(archive)
  })
  let server: Server

  beforeAll(async () => {
    mkdirSync(join(modelStore, 'plain'))
    writeFileSync(join(modelStore, 'plain', 'handler.mjs'), handler)
    const odd = join(modelStore, 'odd name')
    mkdirSync(odd)
    writeFileSync(join(odd, 'handler.mjs'), handler)
    writeFileSync(join(odd, 'model-settings.json'), '{"implementation": "handler.mjs"}')
    const folder = tempDir()
    const source = { modelName: 'hello', version: '1.0', handler: join(modelStore, 'plain', 'handler.mjs') }
    archive = readFileSync(await createArchive({ ...source, exportPath: folder }))
    web.listen(0, '127.0.0.1')
    await once(web, 'listening')
    origin = `http://127.0.0.1:${(web.address() as AddressInfo).port}`
    server = await startServer({ modelStore, snapshots: true, config: { allowed_urls: `${origin}/.*` } })
  })

  afterAll(async () => {
    await server.stop()
    web.closeAllConnections()
    web.close()
  })

  test.each(BAD.filter((name) => name.length < 1000))(
    'does not register a model or a workflow as %j',
    async (name) => {
      const text = encodeURIComponent(name)
      const model = await server.manage('POST', `/models?url=plain&model_name=${text}`)
      expect([model.status, model.json.message]).toEqual([400, expect.stringMatching(RULE)])
      const workflow = await server.manage('POST', `/workflows?url=plain&workflow_name=${text}`)
      expect([workflow.status, workflow.json.message]).toEqual([400, expect.stringMatching(RULE)])
    },
  )

  test.each(BAD)('does not register a model as %j over gRPC', async (name) => {
    const client = managementClient(server.ports.grpcManagement)
    const error = await new Promise((resolve) =>
      client.RegisterModel({ url: 'plain', model_name: name }, resolve),
    )
    expect(error).toMatchObject({ code: 3, details: expect.stringMatching(RULE) as unknown })
    client.close()
  })

  test('does not take a folder’s name for one that breaks the rule', async () => {
    const { status, json } = await server.manage('POST', '/models?url=odd%20name')
    expect([status, json.message]).toEqual([400, expect.stringMatching(RULE)])
  })

  test.each([
    'settings.json',
    'model-settings.json',
    'config.properties',
    'handler.mjs',
    'x.zip',
    '.mar',
    'x%00.mar',
    'a%20b.mar',
    '..mar',
    'x..mar',
  ])('does not download %s', async (name) => {
    const url = encodeURIComponent(`${origin}/${name}`)
    for (const path of [`/models?url=${url}`, `/workflows?url=${url}`]) {
      const { status, json } = await server.manage('POST', path)
      // What has two dots is a relative path.
      expect([status, json.message]).toEqual(
        name.includes('..')
          ? [404, expect.stringContaining('Relative path')]
          : [400, expect.stringMatching(RULE)],
      )
    }
    expect(asked).toEqual([])
    expect(readdirSync(modelStore).sort()).toEqual(['odd name', 'plain'])
  })

  test('starts again with all that it registered', async () => {
    const { status } = await server.manage('POST', `/models?url=${origin}/h.mar&model_name=2.0-rc1_x%2By%40z`)
    expect(status).toBe(200)
    await server.manage('POST', '/models?url=plain&model_name=constructor')
    await server.stop()
    server = await startServer({ modelStore, snapshots: true, folder: server.folder })
    const { json } = await server.manage('GET', '/models')
    expect(json.models!.map(({ modelName }) => modelName)).toEqual(['2.0-rc1_x+y@z', 'constructor'])
  })

  test('leaves out what an older snapshot calls otherwise, and says so', async () => {
    await server.stop()
    const folder = join(server.folder, 'logs', 'config')
    const newest = join(folder, readdirSync(folder).sort().at(-1)!)
    const text = readFileSync(newest, 'utf8')
    expect(text).toContain('"constructor"')
    writeFileSync(newest, text.replace('"constructor"', '"../../x"'))
    server = await startServer({ modelStore, snapshots: true, folder: server.folder })
    const { json } = await server.manage('GET', '/models')
    expect(json.models!.map(({ modelName }) => modelName)).toEqual(['2.0-rc1_x+y@z'])
    expect(server.output.join('\n')).toMatch(RULE)
  })

  test('tells back no more than the beginning of a made-up version', async () => {
    const { json } = await server.manage('GET', `/models/2.0-rc1_x%2By%40z/${'v'.repeat(5000)}`)
    expect(json.message!.length).toBeLessThan(300)
  })
})
