import { cpSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { checkArchive } from '../../frontend/edge/permitted-archives.ts'
import { NamedPrincipal } from '../../frontend/auth/named-principal.ts'
import { writeApiKeys } from '../support/api-keys.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { WorkflowStore } from '../support/workflows.ts'

const modelStore = join(tempDir(), 'models')
const workflows = new WorkflowStore()
/** Serves what is in the workflow store. */
const web = createServer()
let server: Server

beforeAll(async () => {
  mkdirSync(modelStore)
  for (const name of ['echo', 'echo-two', 'secret', 'wf'])
    cpSync(join(REPOSITORY, 'model-store', 'echo'), join(modelStore, name), { recursive: true })
  const scopes = ['inference', 'management']
  const keys = [
    { name: 'some', models: ['echo*'] },
    { name: 'all', models: ['*'] },
    { name: 'whole', models: ['echo-flow', 'wf'] },
    { name: 'node', models: ['wf__echo'] },
  ].map((key) => ({ ...key, scopes }))
  web.listen(0, '127.0.0.1')
  await once(web, 'listening')
  server = await startServer({
    modelStore,
    flags: ['--enable-model-api', '--disable-token-auth'],
    config: { api_keys_file: writeApiKeys(keys), workflow_store: workflows.folder, allow_private_urls: true },
  })
})

afterAll(() => {
  web.closeAllConnections()
  web.close()
})

type Port = 'inference' | 'management'

async function ask(key: string, port: Port, method: string, path: string, body = ''): Promise<string> {
  const json = body === '' ? undefined : { 'content-type': 'application/json' }
  const headers = { authorization: `Bearer tsk_${key}`, ...json }
  const answer = await rawRequest(server.ports[port], path, { method, headers, body })
  return `${answer.status} ${answer.body}`
}

const REFUSED = 'This key does not allow the archive that the url names'

test('a key for some models registers no archive under another name, and learns not which there are', async () => {
  const register = (url: string): Promise<string> =>
    ask('some', 'management', 'POST', `/models?url=${encodeURIComponent(url)}&model_name=echo-mine`)
  const there = await register('secret')
  expect(there).toContain(REFUSED)
  expect(await register('absent')).toBe(there)
  for (const url of [
    join(modelStore, 'secret'),
    `file://${modelStore}/secret`,
    'echo/secret',
    'echo\\secret',
  ])
    expect([url, await register(url)]).toEqual([url, there])
  expect(await register(`http://127.0.0.1:${(web.address() as AddressInfo).port}/secret.mar`)).toBe(there)
  expect(await register('echo-absent.mar')).toContain('Model not found')
  expect(await register('echo-two')).toMatch(/^200 /)
  const other = `/models?url=secret&model_name=other`
  expect(await ask('all', 'management', 'POST', other)).toMatch(/^200 /)
})

test('the name of an archive is what the place names at its end, and a path counts as a whole', () => {
  const allows = (models: string[], url: string): boolean => {
    const grant = { name: 'a', scopes: ['management'] as const, models, expires: Infinity }
    try {
      checkArchive(url, new NamedPrincipal('api key', grant, Date.now))
      return true
    } catch {
      return false
    }
  }
  const good = [
    'echo',
    'echo.mar',
    'echo.tar.gz',
    'https://a.example/x/echo.mar',
    'https://a.example/echo.war?s=1',
  ]
  expect(good.filter((url) => !allows(['echo'], url))).toEqual([])
  const bad = [
    'secret/echo',
    '/store/echo.mar',
    'https://echo/secret.mar',
    'https://a.example/s.mar#/echo.mar',
  ]
  bad.push('https://a.example/s.mar?/echo.mar', 'https:', 'echo.mar/', 'https://a.example/%65cho.mar', '')
  expect(bad.filter((url) => allows(['echo'], url))).toEqual([])
  expect([...good, ...bad].filter((url) => !allows(['*'], url))).toEqual([])
})

test('a workflow brings no archive that the key does not allow, wherever its own comes from', async () => {
  await workflows.pack('echo-flow', 'models: {}\ndag: {pass: [speak]}')
  await workflows.pack('echo-thief', 'models: {thief: {url: secret}}\ndag: {thief: [pass]}')
  await workflows.pack('wf', 'models: {echo: {url: echo}}\ndag: {echo: [pass]}')
  const register = (key: string, url: string, name: string): Promise<string> =>
    ask(key, 'management', 'POST', `/workflows?url=${url}&workflow_name=${name}`)
  expect(await register('some', 'wf.war', 'echo-wf')).toContain(REFUSED)
  expect(await register('some', 'echo-thief.war', 'echo-thief')).toContain(REFUSED)
  expect(await ask('all', 'management', 'GET', '/models')).not.toContain('thief')
  expect(await register('whole', 'wf.war', 'wf')).toContain(REFUSED)
  expect(await register('some', 'echo-flow.war', 'echo-flow')).toMatch(/^200 /)
  expect(await register('all', 'wf.war', 'wf')).toMatch(/^200 /)
})

test('a key reaches workflows and their nodes each by its own name', async () => {
  const reaches = async (key: string): Promise<Record<string, string>> => {
    const paths = ['/wfpredict/wf', '/predictions/wf__echo', '/predictions/wf__(functions)']
    const answers = paths.map(async (path) => [
      path.slice(path.lastIndexOf('/') + 1),
      (await ask(key, 'inference', 'POST', path, '{"id":"x","words":"a"}')).slice(0, 3),
    ])
    return Object.fromEntries(await Promise.all(answers)) as Record<string, string>
  }
  expect(await reaches('all')).toMatchObject({ wf: '200', wf__echo: '200' })
  expect(await reaches('whole')).toEqual({ wf: '200', wf__echo: '404', 'wf__(functions)': '404' })
  expect(await reaches('node')).toEqual({ wf: '404', wf__echo: '200', 'wf__(functions)': '404' })
  expect(await reaches('some')).toEqual({ wf: '404', wf__echo: '404', 'wf__(functions)': '404' })
})
