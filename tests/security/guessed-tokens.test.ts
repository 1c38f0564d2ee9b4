import { readFileSync } from 'node:fs'
import { testAdmission } from '../support/admission.ts'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { FailureLimiter } from '../../frontend/auth/gatekeeper.ts'
import { createTokenStore } from '../../frontend/auth/create-authorizer.ts'
import { createGrpcServers } from '../../frontend/dialects/grpc-servers.ts'
import { createManagementApp } from '../../frontend/dialects/rest-apps.ts'
import type { Refusals } from '../../frontend/observe/metrics/refusals.ts'
import { FakeModels } from '../edge/grpc/fake-models.ts'
import { metadata, SETTINGS } from '../edge/grpc/start-grpc.ts'
import { managementClient } from '../support/grpc-clients.ts'
import { FakeWorkflows } from '../support/fake-workflows.ts'
import { ask, startRig } from '../support/http/rig.ts'
import { tempDir } from '../support/temp.ts'

const START = Date.UTC(2030, 0, 1)

async function openStore() {
  const folder = tempDir()
  const clock = { now: START }
  const store = await createTokenStore({ enabled: true, expirationMin: 60, folder, now: () => clock.now })
  const keys = JSON.parse(readFileSync(join(folder, 'key_file.json'), 'utf8')) as Record<
    string,
    { key: string }
  >
  const passes = (token: string, address?: string): boolean => {
    try {
      store.check('inference', `Bearer ${token}`, { remoteAddress: address })
      return true
    } catch (error) {
      expect(error).toMatchObject({ code: 'UNAUTHORIZED' })
      return false
    }
  }
  return { clock, store, keys, passes, token: keys['inference']!.key }
}

test('after ten wrong tokens from an address one in a second is looked at, and other addresses notice nothing', async () => {
  const { clock, passes, token } = await openStore()
  for (let i = 0; i < 10; i++) expect(passes('wrong', '10.0.0.1')).toBe(false)
  expect(passes(token, '10.0.0.1')).toBe(false)
  expect(passes(token, '10.0.0.2')).toBe(true)
  clock.now += 999
  expect(passes(token, '10.0.0.1')).toBe(false)
  clock.now += 1
  expect(passes('wrong', '10.0.0.1')).toBe(false)
  expect(passes(token, '10.0.0.1')).toBe(false)
  clock.now += 1_000
  expect(passes(token, '10.0.0.1')).toBe(true)
})

test('who guesses cannot lock out clients that share its address and were let in before', async () => {
  const { passes, token } = await openStore()
  expect(passes(token, '10.0.0.1')).toBe(true)
  for (let i = 0; i < 1_000; i++) passes('wrong', '10.0.0.1')
  expect(passes(token, '10.0.0.1')).toBe(true)
})

test('a network of IPv6 is one address, and an address of IPv4 is one in both its forms', () => {
  const limiter = new FailureLimiter(() => START)
  for (let i = 0; i < 10; i++) limiter.failed(`2001:db8:1:2::${i}`)
  for (let i = 0; i < 10; i++) limiter.failed('::ffff:10.0.0.1')
  const addresses = ['2001:db8:1:2:ffff:1:2:3', '2001:db8:1:3::1', '10.0.0.1', '10.0.0.2']
  expect(addresses.map((address) => limiter.admits(address))).toEqual([false, true, false, true])
})

test('it remembers no more than 20000 addresses', () => {
  const limiter = new FailureLimiter(() => START)
  for (let i = 0; i < 30_000; i++) limiter.failed(`10.1.${i >> 8}.${i & 255}`)
  for (let i = 0; i < 30_000; i++) limiter.passed(`10.2.${i >> 8}.${i & 255}`)
  expect(limiter.size).toBe(20_000)
})

test('who sends no token, a key of another kind or an old key does not guess, and locks out nobody', async () => {
  const { clock, store, keys, token } = await openStore()
  const client = { remoteAddress: '10.0.0.1' }
  const refused = { code: 'UNAUTHORIZED' }
  for (let i = 0; i < 100; i++)
    expect(() => store.check('inference', undefined, client)).toThrow(expect.objectContaining(refused))
  expect(() => store.check('inference', `Bearer ${token}`, client)).not.toThrow()
  const other = { remoteAddress: '10.0.0.2' }
  const management = `Bearer ${keys['management']!.key}`
  for (let i = 0; i < 100; i++)
    expect(() => store.check('inference', management, other)).toThrow(expect.objectContaining(refused))
  expect(() => store.check('management', management, other)).not.toThrow()
  clock.now += 3_600_000
  const old = { remoteAddress: '10.0.0.3' }
  for (let i = 0; i < 100; i++)
    expect(() => store.check('management', management, old)).toThrow(expect.objectContaining(refused))
  await store.rotate('management', `Bearer ${keys['API']!.key}`, old)
})

test('guesses of the API key on /token count like all others, for the key itself too, and the metrics tell', async () => {
  const { clock, store, keys } = await openStore()
  const rig = await startRig(createManagementApp, { authorizer: store })
  const rotate = async (token?: string): Promise<number> => {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
    return (await ask(rig, '/token?type=inference', { headers })).status
  }
  expect(await rotate()).toBe(400)
  for (let i = 0; i < 10; i++) expect(await rotate('wrong')).toBe(400)
  expect(await rotate(keys['API']!.key)).toBe(400)
  clock.now += 1_000
  expect(await rotate(keys['API']!.key)).toBe(200)
  expect(await rotate(keys['management']!.key)).toBe(400)
  expect([...(rig.deps.metrics.refusals as Refusals).requests()].map(([, count]) => count)).toEqual([
    1, 12, 0,
  ])
})

test('with tokens off, a check does not read the address of the client', async () => {
  const store = await createTokenStore({ enabled: false, expirationMin: 60 })
  let reads = 0
  const client = {
    get remoteAddress() {
      reads++
      return '10.0.0.1'
    },
  }
  store.check('inference', undefined, client)
  expect(reads).toBe(0)
})

test.each(['REST', 'gRPC'])('what failed over %s counts for both protocols', async (protocol) => {
  const { clock, store, keys } = await openStore()
  const rig = await startRig(createManagementApp)
  Object.assign(rig.deps.authorizer, { check: store.check.bind(store) })
  const models = new FakeModels()
  const log = { debug: () => undefined, error: () => undefined }
  const grpc = createGrpcServers({
    admission: testAdmission(),
    models,
    workflows: new FakeWorkflows(),
    authorizer: store,
    settings: SETTINGS,
    log,
  })
  const client = managementClient((await grpc.listen()).get('management')!.port)
  const rest = async (token: string): Promise<boolean> =>
    (await ask(rig, '/models', { headers: { authorization: `Bearer ${token}` } })).status === 200
  const overGrpc = (token: string): Promise<boolean> =>
    new Promise((resolve) => {
      client.ListModels({}, metadata({ authorization: `Bearer ${token}` }), (error: unknown) =>
        resolve(!error),
      )
    })
  const guess = protocol === 'REST' ? rest : overGrpc
  try {
    for (let i = 0; i < 10; i++) expect(await guess('wrong')).toBe(false)
    const right = keys['management']!.key
    expect([await rest(right), await overGrpc(right)]).toEqual([false, false])
    clock.now += 1_000
    expect([await rest(right), await overGrpc(right)]).toEqual([true, true])
  } finally {
    client.close()
    await grpc.drain()
  }
})
