import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { Client, credentials, Metadata, status, type StatusObject } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { ECHO } from '../support/count.ts'
import { anyClient, type Message } from '../support/grpc-clients.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import {
  FORGOTTEN,
  inferenceRoutes,
  managementRoutes,
  metricsRoutes,
  rpcs,
  servicesOf,
  tokenRoutes,
  type Need,
  type RestRoute,
  type Rpc,
} from './token-routes.ts'

/** What a client may send; `right` and `wrong kind` depend on what the route needs. */
const CREDENTIALS = ['none', 'wrong', 'malformed', 'wrong kind', 'right'] as const

type KeyFile = Record<'inference' | 'management', { key: string; 'expiration time': string }> & {
  API: { key: string }
}

const agent = new Agent({ keepAlive: true, maxSockets: 16 })
afterAll(() => agent.destroy())

/** A server, its keys at its start, and what must happen on it. */
class Subject {
  readonly server: Server
  readonly keys: KeyFile
  readonly #mode: 'on' | 'expired' | 'off'

  constructor(server: Server, mode: 'on' | 'expired' | 'off', keys?: KeyFile) {
    this.server = server
    this.#mode = mode
    this.keys = keys ?? (JSON.parse(readFileSync(join(server.folder, 'key_file.json'), 'utf8')) as KeyFile)
  }

  /** Each cell of the matrix that is not as it should be. */
  async restMistakes(target: Target, routes: RestRoute[]): Promise<string[]> {
    const cells = routes.flatMap((route) => this.#cells(route.needs).map((cell) => ({ ...route, ...cell })))
    return this.#mistakes(cells, ({ method, path, header }) => askRest(target, method, path, header))
  }

  async grpcMistakes(port: number, wanted: Rpc[]): Promise<string[]> {
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
    const cells = wanted.flatMap((rpc) => this.#cells(rpc.needs).map((cell) => ({ ...rpc, ...cell })))
    const mistakes = await this.#mistakes(cells, ({ path, header }) => askGrpc(client, path, header))
    client.close()
    return mistakes
  }

  async #mistakes<
    Cell extends { path: string; method?: string; credential: string; header?: string; needs: Need },
  >(cells: Cell[], ask: (cell: Cell) => Promise<Verdict>): Promise<string[]> {
    expect(cells.length).toBeGreaterThan(0)
    const mistakes: string[] = []
    await Promise.all(
      cells.map(async (cell) => {
        const verdict = await ask(cell)
        if (verdict === this.#expected(cell)) return
        mistakes.push(`${cell.method ?? 'rpc'} ${cell.path}, token ${cell.credential}: ${verdict}`)
      }),
    )
    return mistakes.sort()
  }

  #expected({ needs, credential, path }: { needs: Need; credential: string; path: string }): Verdict {
    // The API key does not expire.
    const isExpired = this.#mode === 'expired' && needs !== 'API'
    const isChecked = needs !== 'nothing' && this.#mode !== 'off'
    if (isChecked && (credential !== 'right' || isExpired)) return 'refused'
    // A path that looks like the token route but is none; and there is no token route without tokens.
    return path === '/tokens' || (needs === 'API' && this.#mode === 'off') ? 'absent' : 'let in'
  }

  #cells(needs: Need): { credential: string; header?: string }[] {
    const { inference, management, API } = this.keys
    const keys = { inference: inference.key, management: management.key, API: API.key }
    const own = needs === 'nothing' ? 'inference' : needs
    return CREDENTIALS.flatMap((credential): { credential: string; header?: string }[] => {
      switch (credential) {
        case 'none':
          return [{ credential }]
        case 'wrong':
          return [{ credential, header: 'Bearer AAAAAAAA' }]
        case 'malformed':
          return [
            { credential, header: keys[own] },
            { credential: 'too long', header: `Bearer ${keys[own]}x` },
          ]
        case 'right':
          return [{ credential, header: `Bearer ${keys[own]}` }]
        case 'wrong kind':
          return Object.entries(keys)
            .filter(([kind]) => kind !== own)
            .map(([kind, key]) => ({ credential: `of kind ${kind}`, header: `Bearer ${key}` }))
      }
    })
  }
}

type Verdict = 'refused' | 'absent' | 'let in'
type Target = { host: string; port: number } | { socketPath: string }

/** 400 InvalidKeyException, and nothing else, is a refusal. */
function askRest(target: Target, method: string, path: string, header?: string): Promise<Verdict> {
  const headers = header === undefined ? {} : { authorization: header }
  return new Promise((resolve, reject) => {
    const sent = request({ ...target, method, path, headers, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('error', reject).on('end', () => {
        // The answer to HEAD has no body.
        const isToken = method === 'HEAD' || text.includes('"type": "InvalidKeyException"')
        // 401 is how the dialects beside TorchServe's say it.
        const isRefusal = (response.statusCode === 400 && isToken) || response.statusCode === 401
        resolve(isRefusal ? 'refused' : text.includes('"ResourceNotFoundException"') ? 'absent' : 'let in')
      })
    })
    sent.on('error', reject).end()
  })
}

/** Any rpc can be called as one that streams both ways: on the wire it looks the same. */
function askGrpc(client: Client, path: string, header?: string): Promise<Verdict> {
  const metadata = new Metadata()
  if (header !== undefined) metadata.set('authorization', header)
  const asItIs = (bytes: Buffer): Buffer => bytes
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest(path, asItIs, asItIs, metadata, {
      deadline: Date.now() + 20_000,
    })
    call.on('error', () => undefined)
    call.on('data', () => {
      resolve('let in')
      call.cancel()
    })
    call.on('status', ({ code, details }: StatusObject) => {
      const isRefusal = code === status.PERMISSION_DENIED && details.startsWith('Token Authorization failed.')
      resolve(isRefusal ? 'refused' : code === status.UNIMPLEMENTED ? 'absent' : 'let in')
    })
    call.write(Buffer.alloc(0))
    call.end()
  })
}

const subjects = {} as Record<'on' | 'shared' | 'expired' | 'off' | 'sharedOff', Subject>

/** The one address of a server whose inference and management API share it. */
function socketIn(folder: string): string {
  return join(folder, 'rest.sock')
}

beforeAll(async () => {
  const start = (config: Record<string, string | number | boolean>, flags: string[] = []) =>
    startServer({ models: [ECHO], flags, config: { ts_open_inference_protocol: true, ...config } })
  const shared = (folder: string) => ({
    inference_address: `unix:${socketIn(folder)}`,
    management_address: `unix:${socketIn(folder)}`,
  })
  const off = ['--disable-token-auth']
  const servers = await Promise.all([
    start({}),
    start(shared(SHARED)),
    start({ token_expiration_min: 0.001 }),
    start({}, off),
    start(shared(SHARED_OFF), off),
  ])
  subjects.on = new Subject(servers[0], 'on')
  subjects.shared = new Subject(servers[1], 'on')
  subjects.expired = new Subject(servers[2], 'expired')
  subjects.off = new Subject(servers[3], 'off', subjects.on.keys)
  subjects.sharedOff = new Subject(servers[4], 'off', subjects.on.keys)
  const end = Date.parse(subjects.expired.keys.management['expiration time'])
  while (Date.now() <= end) await new Promise(setImmediate)
})

const SHARED = tempDir()
const SHARED_OFF = tempDir()

function local(port: number): Target {
  return { host: '127.0.0.1', port }
}

describe('the tables of the test', () => {
  test('know every first segment of the inference API', () => {
    expect(FORGOTTEN).toEqual([])
  })

  test.each([
    ['inference', 'grpcInference'],
    ['management', 'grpcManagement'],
  ] as const)('know every service of the gRPC %s listener', async (listener, port) => {
    const client = anyClient(
      'grpc/reflection/v1/reflection.proto',
      'grpc.reflection.v1',
      'ServerReflection',
      subjects.on.server.ports[port],
    )
    const info = client['ServerReflectionInfo'] as unknown as () => NodeJS.ReadWriteStream &
      AsyncIterable<Message>
    const stream = info.call(client)
    stream.end({ list_services: '' } as unknown as string)
    const services: unknown[] = []
    for await (const { list_services_response: list } of stream) services.push(list)
    expect(services).toEqual([
      { service: servicesOf(listener).map(({ definition }) => ({ name: definition.name })) },
    ])
    client.close()
  })
})

describe.each(['on', 'expired', 'off'] as const)('each route and rpc x each token, tokens %s', (mode) => {
  test('REST inference', async () => {
    const { server } = subjects[mode]
    expect(await subjects[mode].restMistakes(local(server.ports.inference), inferenceRoutes())).toEqual([])
  })

  test('REST management', async () => {
    const target = local(subjects[mode].server.ports.management)
    expect(await subjects[mode].restMistakes(target, managementRoutes())).toEqual([])
  })

  test('REST metrics', async () => {
    const { server } = subjects[mode]
    expect(await subjects[mode].restMistakes(local(server.ports.metrics), metricsRoutes())).toEqual([])
  })

  test('gRPC', async () => {
    const { grpcInference, grpcManagement } = subjects[mode].server.ports
    expect(await subjects[mode].grpcMistakes(grpcInference, rpcs('inference'))).toEqual([])
    expect(await subjects[mode].grpcMistakes(grpcManagement, rpcs('management'))).toEqual([])
  })

  test('the token route, which changes the keys and so comes last', async () => {
    const target = local(subjects[mode].server.ports.management)
    expect(await subjects[mode].restMistakes(target, tokenRoutes())).toEqual([])
  })
})

describe.each([
  ['on', 'shared', SHARED],
  ['off', 'sharedOff', SHARED_OFF],
] as const)('inference and management on one Unix socket, tokens %s', (_mode, name, folder) => {
  test('each route asks for its own kind of token', async () => {
    const target = { socketPath: socketIn(folder) }
    const routes = [...inferenceRoutes(), ...managementRoutes()]
    expect(await subjects[name].restMistakes(target, routes)).toEqual([])
    expect(await subjects[name].restMistakes(target, tokenRoutes())).toEqual([])
  })
})
