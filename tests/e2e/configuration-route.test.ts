import { beforeAll, expect, test } from '@jest/globals'
import { KEYS } from '../../frontend/config/keys.ts'
import { writeApiKeys } from '../support/api-keys.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const SECRET = 'hunter2-of-the-operator'
const GRANTS = {
  operator: { scopes: ['management'] },
  user: { scopes: ['inference'] },
}

let server: Server

beforeAll(async () => {
  const keys = writeApiKeys(Object.entries(GRANTS).map(([name, grant]) => ({ name, ...grant })))
  server = await startServer({
    flags: ['--enable-model-api'],
    config: {
      api_keys_file: keys,
      job_queue_size: 7,
      keystore_pass: SECRET,
      allowed_urls: `https://user:${SECRET}@models[.]example/.*`,
    },
  })
})

async function ask(caller: keyof typeof GRANTS, method = 'GET') {
  const headers = { authorization: `Bearer tsk_${caller}` }
  const { status, body } = await rawRequest(server.ports.management, '/configuration', { method, headers })
  return { status, body }
}

test('every key is shown with its value and where it came from', async () => {
  const { status, body } = await ask('operator')
  const { settings } = JSON.parse(body) as { settings: { name: string; value?: string; source: string }[] }
  expect(status).toBe(200)
  expect(settings.map(({ name }) => name)).toEqual(Object.values(KEYS).map(({ name }) => name))
  const find = (name: string) => settings.find((each) => each.name === name)
  expect(find('job_queue_size')).toMatchObject({
    value: '7',
    source: expect.stringMatching(/config[.]properties:\d+$/),
    fallback: '100',
  })
  expect(find('enable_model_api')).toMatchObject({ value: 'true', source: '--enable-model-api' })
  expect(find('max_request_size')).toMatchObject({ source: 'default' })
})

test('no secret is shown', async () => {
  const { body } = await ask('operator')
  expect(body).not.toContain(SECRET)
  expect(JSON.parse(body).settings).toContainEqual(
    expect.objectContaining({ name: 'keystore_pass', value: '***' }),
  )
})

test('only who may manage sees it', async () => {
  const { status, body } = await ask('user')
  expect(status).toBe(400)
  expect(body).not.toContain('job_queue_size')
})

test('it cannot be changed', async () => {
  expect((await ask('operator', 'PUT')).status).toBe(405)
})
