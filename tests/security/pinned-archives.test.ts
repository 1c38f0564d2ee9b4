import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { call, managementClient } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { changeOneByte, packEcho, sha256 } from '../support/echo-archive.ts'
import { tempDir } from '../support/temp.ts'

const OTHER = 'f'.repeat(64)
const REFUSED = /must have the SHA-256 [0-9a-f]{64}, but has [0-9a-f]{64}\. If you trust it, change the pin/

/** The echo model, packed once: version 1.0 and 2.0. */
let echo: string
let newer: string

function storeWith(...names: string[]): string {
  const store = join(tempDir(), 'store')
  mkdirSync(store)
  for (const name of names) copyFileSync(name === 'newer.mar' ? newer : echo, join(store, name))
  return store
}

beforeAll(async () => {
  echo = await packEcho(tempDir(), 'echo')
  newer = await packEcho(tempDir(), 'echo', { version: '2.0' })
})

async function register(server: Server, query: string): Promise<{ status: number; message: string }> {
  const { status, json } = await server.manage('POST', `/models?initial_workers=0&${query}`)
  return { status, message: json.message ?? json.status ?? '' }
}

describe('a pin of a register call', () => {
  let server: Server

  beforeAll(async () => {
    server = await startServer({ modelStore: storeWith('a.mar', 'b.mar') })
  })

  test('lets the right archive in, in any letter case, over REST, a JSON body and gRPC', async () => {
    const pin = sha256(echo)
    expect((await register(server, `url=a.mar&sha256=${pin.toUpperCase()}`)).status).toBe(200)
    expect((await server.describe('echo'))[0]).toMatchObject({ archiveSha256: pin, archivePinned: true })
    await server.manage('DELETE', '/models/echo')
    const body = JSON.stringify({ url: 'a.mar', sha256: pin, initial_workers: 0 })
    const headers = { 'content-type': 'application/json' }
    const json = await rawRequest(server.ports.management, '/models', { method: 'POST', headers, body })
    expect(json.status).toBe(200)
    await server.manage('DELETE', '/models/echo')
    const client = managementClient(server.ports.grpcManagement)
    await call(client, client.RegisterModel, { url: 'a.mar', sha256: pin, initial_workers: 0 })
    client.close()
    expect((await server.describe('echo'))[0]!.archivePinned).toBe(true)
  })

  test('keeps another archive out, and a folder, over REST and gRPC', async () => {
    const rest = await register(server, `url=b.mar&sha256=${OTHER}`)
    expect([rest.status, rest.message]).toEqual([400, expect.stringMatching(REFUSED)])
    const client = managementClient(server.ports.grpcManagement)
    const overGrpc = call(client, client.RegisterModel, { url: 'b.mar', sha256: OTHER })
    await expect(overGrpc).rejects.toMatchObject({ code: 3, details: expect.stringMatching(REFUSED) })
    client.close()
    const digits = await register(server, 'url=b.mar&sha256=abc')
    expect([digits.status, digits.message]).toEqual([400, 'Parameter sha256 must be 64 hexadecimal digits.'])
  })
})

describe('a pin of the configuration', () => {
  test('of a location lets only that archive start', async () => {
    const modelStore = storeWith('a.mar')
    const pinned = await startServer({ modelStore, models: [`one=a.mar#sha256=${sha256(echo)}`] })
    expect((await pinned.describe('one'))[0]!.archivePinned).toBe(true)
    await pinned.stop()
    changeOneByte(join(modelStore, 'a.mar'))
    const start = startServer({ modelStore, models: [`one=a.mar#sha256=${sha256(echo)}`] })
    await expect(start).rejects.toThrow(REFUSED)
  })

  test('of a name and version holds for every registration, and for versions that it does not name', async () => {
    const modelStore = storeWith('echo.mar', 'changed.mar', 'newer.mar')
    changeOneByte(join(modelStore, 'changed.mar'))
    const models = JSON.stringify({ echo: { '1.0': { sha256: sha256(echo) } } })
    const server = await startServer({ modelStore, config: { models } })
    expect((await register(server, 'url=changed.mar')).message).toMatch(REFUSED)
    const unnamed = await register(server, 'url=newer.mar')
    expect(unnamed.message).toMatch(/has a sha256 in the key models, but not for version 2\.0/)
    expect((await register(server, 'url=echo.mar')).status).toBe(200)
    expect(readdirSync(join(server.folder, 'tmp/models'))).toHaveLength(1)
    await server.stop()
    await expect(startServer({ modelStore, models: ['changed.mar'], config: { models } })).rejects.toThrow(
      REFUSED,
    )
  })
})

describe('a snapshot', () => {
  const flags = ['--disable-token-auth', '--enable-model-api']

  /** Starts, registers, and stops; a restart in the same folder reads the snapshot. */
  async function snapshotOf(query: string): Promise<{ folder: string; modelStore: string }> {
    const folder = tempDir()
    const modelStore = storeWith('a.mar')
    const first = await startServer({ folder, modelStore, snapshots: true, flags })
    expect((await register(first, query)).status).toBe(200)
    await first.stop()
    return { folder, modelStore }
  }

  test('keeps a pin: a restart with another archive is refused', async () => {
    const state = await snapshotOf(`url=a.mar&sha256=${sha256(echo)}`)
    const again = await startServer({ ...state, snapshots: true, flags })
    expect((await again.describe('echo'))[0]!.archivePinned).toBe(true)
    await again.stop()
    changeOneByte(join(state.modelStore, 'a.mar'))
    const changed = startServer({ ...state, snapshots: true, flags })
    await expect(changed).rejects.toThrow(
      /Error while registering model echo\. Details: .*must have the SHA-256 .*model_snapshot at/,
    )
  })

  test('has the hash of an archive without a pin, and a restart tells that it has changed', async () => {
    const state = await snapshotOf('url=a.mar')
    const config = join(state.folder, 'logs/config')
    const newest = readFileSync(join(config, readdirSync(config).sort().at(-1)!), 'utf8')
    expect(newest).toContain(sha256(echo))
    changeOneByte(join(state.modelStore, 'a.mar'))
    const again = await startServer({ ...state, snapshots: true, flags })
    expect(again.output.join('\n')).toMatch(
      `Model echo, version 1.0: its archive has changed since the snapshot; its SHA-256 was ${sha256(echo)}`,
    )
    await again.stop()
  })
})
