import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { ECHO } from '../support/count.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { FORGOTTEN } from './token-routes.ts'
import { Subject } from './token-subject.ts'

/** Everything that can listen does. */
const ALL = { ts_open_inference_protocol: true, open_inference_grpc_port: 0, triton_grpc_port: 0 }

/** One address for the inference and the management API. */
function shared() {
  const address = `unix:${join(tempDir(), 'rest.sock')}`
  return { inference_address: address, management_address: address }
}

function start(config: Record<string, string | number>, flags: string[] = []): Promise<Server> {
  return startServer({ models: [ECHO], flags, config: { ...ALL, ...config } })
}

const EXPIRATION_MS = 60

const OFF = ['--disable-token-auth']

type Name = 'on' | 'shared' | 'expired' | 'off' | 'sharedOff'

const SUBJECTS: Record<Name, () => Promise<Subject>> = {
  on: async () => new Subject(await start({}), 'on'),
  shared: async () => new Subject(await start(shared()), 'on'),
  expired: async () => {
    const subject = new Subject(await start({ token_expiration_min: EXPIRATION_MS / 60_000 }), 'expired')
    const end = Date.parse(subject.keys.management['expiration time'])
    // Both processes have one clock, and the tokens were made before they were read.
    if (end > Date.now() + EXPIRATION_MS) throw new Error('The tokens live longer than token_expiration_min')
    while (Date.now() <= end) await wait(end - Date.now() + 1)
    return subject
  },
  off: async () => new Subject(await start({}, OFF), 'off', (await subjectOf('on')).keys),
  sharedOff: async () => new Subject(await start(shared(), OFF), 'off', (await subjectOf('on')).keys),
}

const started = new Map<Name, Promise<Subject>>()

/** A server of this kind; there is one of each. */
function subjectOf(name: Name): Promise<Subject> {
  const subject = started.get(name) ?? SUBJECTS[name]()
  started.set(name, subject)
  return subject
}

const GRPC = [
  'Inference gRPC API',
  'Management gRPC API',
  'Open Inference gRPC API',
  'Open Inference gRPC API (Triton)',
]

const REST = {
  on: ['Inference REST API', 'Management REST API', 'Metrics REST API'],
  shared: ['Inference and Management REST API', 'Metrics REST API'],
}

test.each(['on', 'shared'] as const)(
  'the matrix walks every listener: addresses of the server with tokens "%s"',
  async (name) => {
    const subject = await subjectOf(name)
    expect(subject.listeners.map((listener) => listener.name)).toEqual([...REST[name], ...GRPC])
  },
)

test('the paths that the dialects list have every first segment of the inference API', () => {
  expect(FORGOTTEN).toEqual([])
})

describe.each(['on', 'expired', 'off', 'shared', 'sharedOff'] as const)('server %s', (name) => {
  test('each route and rpc of each listener asks for its own kind of token', async () => {
    const subject = await subjectOf(name)
    const mistakes: Record<string, string[]> = {}
    for (const listener of subject.listeners) mistakes[listener.name] = await subject.mistakes(listener)
    expect(Object.values(mistakes).flat()).toEqual([])
  })

  test('the token route asks for the API key', async () => {
    const subject = await subjectOf(name)
    // It changes the keys, so it comes last.
    for (const listener of subject.listeners)
      if (listener.rest === 'management' || listener.rest === 'shared')
        expect(await subject.tokenRouteMistakes(listener)).toEqual([])
  })
})

describe.each(['on', 'shared'] as const)('server %s', (name) => {
  test.each(REST[name])('%s: no path that its code may know does anything without a token', async (which) => {
    const subject = await subjectOf(name)
    const listener = subject.listeners.find((one) => one.name === which)!
    expect(await subject.letInWithoutToken(listener)).toEqual([])
  })
})
