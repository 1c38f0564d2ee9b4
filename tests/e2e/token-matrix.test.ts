import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { ECHO } from '../support/count.ts'
import { startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { FORGOTTEN } from './token-routes.ts'
import { Subject } from './token-subject.ts'

const subjects = {} as Record<'on' | 'shared' | 'expired' | 'off' | 'sharedOff', Subject>

/** Everything that can listen does. */
const ALL = { ts_open_inference_protocol: true, open_inference_grpc_port: 0, triton_grpc_port: 0 }

beforeAll(async () => {
  const start = (config: Record<string, string | number | boolean>, flags: string[] = []) =>
    startServer({ models: [ECHO], flags, config: { ...ALL, ...config } })
  /** One address for the inference and the management API. */
  const shared = () => {
    const address = `unix:${join(tempDir(), 'rest.sock')}`
    return { inference_address: address, management_address: address }
  }
  const off = ['--disable-token-auth']
  const servers = await Promise.all([
    start({}),
    start(shared()),
    start({ token_expiration_min: 0.001 }),
    start({}, off),
    start(shared(), off),
  ])
  subjects.on = new Subject(servers[0], 'on')
  subjects.shared = new Subject(servers[1], 'on')
  subjects.expired = new Subject(servers[2], 'expired')
  subjects.off = new Subject(servers[3], 'off', subjects.on.keys)
  subjects.sharedOff = new Subject(servers[4], 'off', subjects.on.keys)
  const end = Date.parse(subjects.expired.keys.management['expiration time'])
  while (Date.now() <= end) await new Promise(setImmediate)
})

afterAll(() => {
  for (const subject of Object.values(subjects)) subject.close()
})

const GRPC = [
  'Inference gRPC API',
  'Management gRPC API',
  'Open Inference gRPC API',
  'Open Inference gRPC API (Triton)',
]

test.each([
  ['on', ['Inference REST API', 'Management REST API', 'Metrics REST API', ...GRPC]],
  ['shared', ['Inference and Management REST API', 'Metrics REST API', ...GRPC]],
] as const)(
  'the matrix walks every listener: addresses of the server with tokens "%s"',
  (name, listeners) => {
    expect(subjects[name].listeners.map((listener) => listener.name)).toEqual(listeners)
  },
)

test('the table of the test has examples for every first segment of the inference API', () => {
  expect(FORGOTTEN).toEqual([])
})

describe.each(['on', 'expired', 'off', 'shared', 'sharedOff'] as const)('server %s', (name) => {
  test('each route and rpc of each listener asks for its own kind of token', async () => {
    const mistakes: Record<string, string[]> = {}
    for (const listener of subjects[name].listeners)
      mistakes[listener.name] = await subjects[name].mistakes(listener)
    expect(Object.values(mistakes).flat()).toEqual([])
  })

  test('the token route asks for the API key', async () => {
    // It changes the keys, so it comes last.
    for (const listener of subjects[name].listeners)
      if (listener.rest === 'management' || listener.rest === 'shared')
        expect(await subjects[name].tokenRouteMistakes(listener)).toEqual([])
  })
})

test.each(['on', 'shared'] as const)(
  'server %s: no path that its code may know does anything without a token',
  async (name) => {
    for (const listener of subjects[name].listeners)
      expect(await subjects[name].letInWithoutToken(listener)).toEqual([])
  },
)
