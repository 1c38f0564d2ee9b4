import { readdirSync, readFileSync, statSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { redactSecrets, redactUrl } from '../../common/texts.ts'
import { createArchive } from '../../model-archiver/pack.ts'
import { managementClient } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const SECRET = 'plantedsecret'

let archive: Buffer
let host: string
const web = createServer((request, response) => {
  const path = request.url!.split('?')[0]!
  if (path.startsWith('/there')) response.end(archive)
  else if (path.startsWith('/away'))
    response.writeHead(302, { location: `http://u:${SECRET}@else.invalid/x.mar?sig=${SECRET}` }).end()
  else response.writeHead(403).end()
})

beforeAll(async () => {
  const handler = join(REPOSITORY, 'model-store', 'echo', 'handler.ts')
  const source = { modelName: 'echo', version: '1.0', handler, exportPath: tempDir() }
  archive = readFileSync(await createArchive(source))
  web.listen(0, '127.0.0.1')
  await once(web, 'listening')
  host = `127.0.0.1:${(web.address() as AddressInfo).port}`
})

afterAll(() => {
  web.closeAllConnections()
  web.close()
})

/** Addresses with a secret, by what the web server does. */
const secretUrls = (path: string): string[] => [
  `http://user:${SECRET}@${host}${path}`,
  `http:user:${SECRET}@${host}${path}`,
  `http://a b:x@${SECRET}@${host}${path}`,
  `http://${host}${path}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=${SECRET}`,
  `http://${host}${path}?X-Amz-Credential=${SECRET}%2F20300101&X-Amz-Security-Token=${SECRET}`,
  `http://${host}${path}?sv=2022&sig=${SECRET}`,
  `http://${host}${path}?access_token=a ${SECRET}`,
  `http://${host}${path}?s%69g=${SECRET}`,
  `http://${host}${path}#token=${SECRET}`,
]

/** All that the server wrote, but for the configuration that it was given. */
function written(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
  const paths = files.map((file) => join(file.parentPath, file.name))
  return new Map(
    paths
      .filter((path) => path !== join(folder, 'config.properties'))
      .map((path) => [path, readFileSync(path, 'latin1')]),
  )
}

function leaks(server: Server, answers: readonly string[]): string[] {
  const files = [...written(server.folder)].filter(([, text]) => text.includes(SECRET)).map(([path]) => path)
  const told = [...answers, ...server.output].filter((text) => text.includes(SECRET))
  return [...files, ...told]
}

test('no answer, log, metric or snapshot holds a password or signature of a model’s address', async () => {
  const config = { allowed_urls: `http:.*${host}/.*`, log_level: 'debug' }
  const server = await startServer({ snapshots: true, config })
  const client = managementClient(server.ports.grpcManagement)
  const answers: string[] = []
  const ask = async (method: string, path: string, port = server.ports.management): Promise<void> => {
    answers.push((await rawRequest(port, path, { method })).body)
  }
  for (const url of secretUrls('/there/echo.mar')) {
    await ask('POST', `/models?url=${encodeURIComponent(url)}&initial_workers=1&synchronous=true`)
    expect(answers.at(-1)).toContain('registered with 1')
    for (const path of ['/models', '/models/echo', '/models/echo/all', '/models/echo?customized=true'])
      await ask('GET', path)
    await ask('GET', '/metrics', server.ports.metrics)
    await ask('POST', `/models?url=${encodeURIComponent(url)}`) // is there already
    await ask('DELETE', '/models/echo')
  }
  const failing = ['/gone/x.mar', '/away/x.mar', '/x/../y.mar', '/there/settings.json'].flatMap(secretUrls)
  for (const url of [...failing, `http://u:${SECRET}@other.invalid/x.mar`, `/no/such?sig=${SECRET}`]) {
    for (const path of ['/models', '/workflows']) {
      await ask('POST', `${path}?url=${encodeURIComponent(url)}`)
      await ask('POST', `${path}?url=${url.replaceAll(' ', '+').split('#')[0]!}`)
    }
    answers.push(
      await new Promise((resolve) =>
        client.RegisterModel({ url }, (e, a) => resolve(JSON.stringify(e ?? a))),
      ),
    )
  }
  client.close()
  await server.stop()
  expect(answers.length).toBeGreaterThan(100)
  expect(readFileSync(join(server.folder, 'logs', 'access_log.log'), 'utf8')).toContain('X-Amz-Signature')
  expect(leaks(server, answers)).toEqual([])
})

test('a model with a secret in its address is there again after a restart', async () => {
  const config = { allowed_urls: `http:.*${host}/.*` }
  const first = await startServer({ snapshots: true, config })
  const url = `http://user:${SECRET}@${host}/there/echo.mar?sig=${SECRET}&versionId=3`
  await first.manage('POST', `/models?url=${encodeURIComponent(url)}&initial_workers=1`)
  await first.stop()
  const second = await startServer({ snapshots: true, folder: first.folder })
  await second.ready('echo')
  expect((await second.describe('echo'))[0]!.modelUrl).toBe(
    `http://***@${host}/there/echo.mar?sig=***&versionId=3`,
  )
  await second.stop()
  expect(leaks(second, first.output)).toEqual([])
  const snapshots = [...written(second.folder).keys()].filter((path) => path.endsWith('.cfg'))
  expect(snapshots.length).toBeGreaterThan(1)
  expect(new Set(snapshots.map((path) => statSync(path).mode & 0o777))).toEqual(new Set([0o600]))
})

test('a start whose model fails does not tell the secret of its own configuration', async () => {
  const server = await startServer({ models: [`http://user:${SECRET}@${host}/gone/x.mar?sig=${SECRET}`] })
  await server.lines('Failed to load model')
  await server.stop()
  expect(leaks(server, [])).toEqual([])
})

test.each([
  'model.mar',
  '/data/@scope/model.mar',
  'file:///srv/@models/x.mar',
  'https://host/a@b/x.mar?versionId=3&download=true',
  'https://host/x.mar?next=https%3A%2F%2Fhost%2Fa%20b',
  '/predictions/m?max_tokens=5&text=a%20b%3Dc',
  '/v2/models/m/infer?%zz=%zz',
])('%s holds no secret and stays as it is', (text) => {
  expect(redactUrl(text)).toBe(text)
})

test.each([
  [
    '/models?url=https%3A%2F%2Fu%3Apw%40h%2Fx.mar&batch_size=1',
    '/models?url=https%3A%2F%2F***%40h%2Fx.mar&batch_size=1',
  ],
  [
    '/models?url=https%3A%2F%2Fh%2Fx.mar%3Fsig%3Dpw%26v%3D1',
    '/models?url=https%3A%2F%2Fh%2Fx.mar%3Fsig%3D***%26v%3D1',
  ],
  ['a https://u:p@w@h/x and http://h/?token=pw b', 'a https://***@h/x and http://h/?token=*** b'],
])('%s is shown as %s', (text, shown) => {
  expect(redactSecrets(text)).toBe(shown)
})

test('a text made to cost much costs little', () => {
  const texts = [
    'http:'.repeat(200_000),
    '//@'.repeat(300_000),
    '?a='.repeat(300_000),
    `${'x@'.repeat(400_000)}/`,
  ]
  const start = performance.now()
  for (const text of texts) redactSecrets(text)
  expect(performance.now() - start).toBeLessThan(3_000)
})
