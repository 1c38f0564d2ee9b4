import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { writeApiKeys } from '../support/api-keys.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { WorkflowStore } from '../support/workflows.ts'

test('a key reaches workflows and their nodes each by its own name', async () => {
  const modelStore = join(tempDir(), 'models')
  const workflows = new WorkflowStore()
  mkdirSync(modelStore)
  cpSync(join(REPOSITORY, 'model-store', 'echo'), join(modelStore, 'echo'), { recursive: true })
  const keys = writeApiKeys([
    { name: 'all', scopes: ['inference', 'management'] },
    { name: 'some', scopes: ['inference'], models: ['echo*'] },
    { name: 'whole', scopes: ['inference'], models: ['echo-flow', 'wf'] },
    { name: 'node', scopes: ['inference'], models: ['wf__echo'] },
  ])
  const server = await startServer({
    modelStore,
    flags: ['--enable-model-api', '--disable-token-auth'],
    config: { api_keys_file: keys, workflow_store: workflows.folder },
  })
  const ask = async (key: string, listener: 'inference' | 'management', path: string): Promise<string> => {
    const isInference = listener === 'inference'
    const json = isInference ? { 'content-type': 'application/json' } : undefined
    const headers = { authorization: `Bearer tsk_${key}`, ...json }
    const body = isInference ? '{"id":"x","words":"a"}' : ''
    return String((await rawRequest(server.ports[listener], path, { method: 'POST', headers, body })).status)
  }
  await workflows.pack('wf', 'models: {echo: {url: echo}}\ndag: {echo: [pass]}')
  expect(await ask('all', 'management', '/workflows?url=wf.war')).toBe('200')
  const reaches = async (key: string): Promise<Record<string, string>> => {
    const paths = ['/wfpredict/wf', '/predictions/wf__echo', '/predictions/wf__(functions)']
    const answers = paths.map(async (path) => [
      path.slice(path.lastIndexOf('/') + 1),
      await ask(key, 'inference', path),
    ])
    return Object.fromEntries(await Promise.all(answers)) as Record<string, string>
  }
  expect(await reaches('all')).toMatchObject({ wf: '200', wf__echo: '200' })
  expect(await reaches('whole')).toEqual({ wf: '200', wf__echo: '404', 'wf__(functions)': '404' })
  expect(await reaches('node')).toEqual({ wf: '404', wf__echo: '200', 'wf__(functions)': '404' })
  expect(await reaches('some')).toEqual({ wf: '404', wf__echo: '404', 'wf__(functions)': '404' })
  await server.stop()
})
