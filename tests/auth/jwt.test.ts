import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeAll, beforeEach, expect, jest, test } from '@jest/globals'
import {
  exportJWK,
  generateKeyPair,
  SignJWT,
  UnsecuredJWT,
  type CryptoKey,
  type JWK,
  type JWTPayload,
} from 'jose'
import { createAuthorizer, type AuthSettings } from '../../frontend/auth/create-authorizer.ts'
import type { Principal, Scope } from '../../frontend/auth/principal.ts'
import type { Gatekeeper } from '../../frontend/auth/gatekeeper.ts'

const ISSUER = 'https://issuer.example'

interface Pair {
  readonly kid: string
  readonly key: CryptoKey
  readonly jwk: JWK
}

let first: Pair
let second: Pair
let jwks: Server
let store: Gatekeeper
let fetches: number
let published: Pair[]
let isDown: boolean
/** Spaces that the key set has before its keys. */
let padding: number
/** Milliseconds by which the server's clock is ahead of that of the issuer. */
let ahead: number
let warnings: string[]

async function pair(kid: string): Promise<Pair> {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  return { kid, key: privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256' } }
}

beforeAll(async () => {
  first = await pair('one')
  second = await pair('two')
})

beforeEach(async () => {
  fetches = 0
  isDown = false
  padding = 0
  ahead = 0
  const now = Date.now.bind(Date)
  jest.spyOn(Date, 'now').mockImplementation(() => now() + ahead)
  published = [first]
  warnings = []
  jwks = createServer((_request, response) => {
    fetches += 1
    response.statusCode = isDown ? 500 : 200
    response.end(' '.repeat(padding) + JSON.stringify({ keys: published.map(({ jwk }) => jwk) }))
  }).listen(0, '127.0.0.1')
  await once(jwks, 'listening')
  const settings: AuthSettings = {
    disableTokenAuthorization: true,
    tokenExpirationMin: 60,
    apiKeysFile: undefined,
    jwtIssuer: ISSUER,
    jwtAudience: ['models', 'others'],
    jwtJwksUrl: `http://127.0.0.1:${(jwks.address() as AddressInfo).port}/`,
    jwtScopeClaim: 'scope',
    jwtModelsClaim: 'torchserve_models',
    tlsClientCa: undefined,
  }
  store = await createAuthorizer(settings, (message) => warnings.push(message))
})

afterEach(() => {
  jest.restoreAllMocks()
  store.close()
  jwks.closeAllConnections()
  jwks.close()
})

interface Made {
  claims?: JWTPayload
  by?: Pair
  kid?: string
  lifetime?: string
  issuer?: string
  audience?: string
}

function make({ claims = {}, by = first, kid = by.kid, ...facts }: Made = {}): Promise<string> {
  return new SignJWT({ sub: 'someone', scope: 'openid torchserve:inference', ...claims })
    .setProtectedHeader({ alg: 'ES256', kid })
    .setIssuer(facts.issuer ?? ISSUER)
    .setAudience(facts.audience ?? 'models')
    .setExpirationTime(facts.lifetime ?? '1h')
    .sign(by.key)
}

/** As the listeners do it. */
async function ask(
  token: string,
  scope: Scope = 'inference',
  remoteAddress?: string,
): Promise<Principal | undefined> {
  const authorization = `Bearer ${token}`
  await store.prepare?.(authorization, { remoteAddress })
  try {
    return store.check(scope, authorization, { remoteAddress })
  } catch (error) {
    expect(error).toMatchObject({ code: 'UNAUTHORIZED' })
    return undefined
  }
}

test('a JWT has the scopes and models of its claims', async () => {
  const all = (await ask(await make()))!
  expect([all.name, all.kind, all.sees('anything')]).toEqual(['someone', 'jwt', true])
  const some = (await ask(
    await make({ claims: { scope: ['torchserve:inference'], torchserve_models: 'a* b' } }),
  ))!
  expect(['a1', 'b', 'c'].map((name) => some.sees(name))).toEqual([true, true, false])
  const none = (await ask(await make({ claims: { torchserve_models: 7 } })))!
  expect(none.sees('a')).toBe(false)
  expect(await ask(await make(), 'management')).toBeUndefined()
  expect(await ask(await make({ claims: { scope: 'torchserve:management' } }), 'management')).toBeDefined()
  expect(await ask(await make({ claims: { scope: 'torchserve:all inference' } }))).toBeUndefined()
  // Management is for all models or none.
  const both = 'torchserve:inference torchserve:management'
  const narrow = await make({ claims: { scope: both, torchserve_models: 'a*' } })
  expect(await ask(narrow)).toBeDefined()
  expect(await ask(narrow, 'management')).toBeUndefined()
})

test('callers whose subjects differ anywhere are different, however long the subjects are', async () => {
  const nameOf = async (sub: string): Promise<string> => (await ask(await make({ claims: { sub } })))!.name
  const [a, b] = [await nameOf(`${'s'.repeat(5_000)}a`), await nameOf(`${'s'.repeat(5_000)}b`)]
  expect(a).toMatch(/^s{136} sha256:[0-9a-f]{64}$/)
  expect(a).not.toBe(b)
  expect(await nameOf(`${'s'.repeat(5_000)}a`)).toBe(a)
  expect(await nameOf(a)).not.toBe(a)
  expect(await nameOf('s'.repeat(200))).toBe('s'.repeat(200))
})

test('after the first sight nothing is awaited, fetched or verified', async () => {
  const tokens = await Promise.all([make(), make({ claims: { jti: '2' } }), make({ claims: { jti: '3' } })])
  for (const token of tokens) await ask(token)
  expect(fetches).toBe(1)
  isDown = true
  for (const token of tokens) {
    expect(store.prepare?.(`Bearer ${token}`)).toBeUndefined()
    expect(store.check('inference', `Bearer ${token}`)).toMatchObject({ name: 'someone' })
  }
  expect(fetches).toBe(1)
})

test.each<[string, () => Promise<string>]>([
  ['is expired', () => make({ lifetime: '-31s' })],
  ['is for another audience', () => make({ audience: 'strangers' })],
  ['is of another issuer', () => make({ issuer: 'https://other.example' })],
  ['has no subject', () => make({ claims: { sub: undefined } })],
  ['is not valid yet', () => make({ claims: { nbf: Math.floor(Date.now() / 1000) + 100 } })],
  ['is signed by another key under a known id', () => make({ by: second, kid: 'one' })],
  [
    'is not signed',
    () =>
      Promise.resolve(
        new UnsecuredJWT({ sub: 'a', scope: 'torchserve:inference', iss: ISSUER, aud: 'models' }).encode(),
      ),
  ],
  [
    'is signed with the public key as a shared secret',
    () =>
      new SignJWT({ sub: 'someone', scope: 'torchserve:inference' })
        .setProtectedHeader({ alg: 'HS256', kid: 'one' })
        .setIssuer(ISSUER)
        .setAudience('models')
        .setExpirationTime('1h')
        .sign(Buffer.from(JSON.stringify(first.jwk))),
  ],
  ['is cut', async () => (await make()).slice(0, -4)],
])('a JWT that %s is refused', async (_what, made) => {
  expect(await ask(await make())).toBeDefined()
  expect(await ask(await made())).toBeUndefined()
})

test('who invents key ids makes the server fetch once, and is slowed down', async () => {
  for (let i = 0; i < 50; i++)
    expect(await ask(await make({ by: second, kid: `kid-${i}` }), 'inference', '10.0.0.1')).toBeUndefined()
  expect(fetches).toBe(1)
  const right = await make()
  expect(store.prepare?.(`Bearer ${right}`, { remoteAddress: '10.0.0.1' })).toBeUndefined()
  expect(await ask(right, 'inference', '10.0.0.1')).toBeUndefined()
  expect(await ask(right, 'inference', '10.0.0.2')).toBeDefined()
})

test('an address that fails is not asked for every token', async () => {
  isDown = true
  for (let i = 0; i < 20; i++) expect(await ask(await make({ claims: { jti: `${i}` } }))).toBeUndefined()
  expect(fetches).toBe(1)
  expect(warnings).toEqual([expect.stringContaining('status 500')])
})

test('a key set that is larger than 1 MiB is none', async () => {
  padding = 1_048_576
  expect(await ask(await make())).toBeUndefined()
  expect(warnings).toEqual([expect.stringContaining('it is larger than 1 MiB')])
})

test('a JWT whose key has left the set is refused after ten minutes, long before its end', async () => {
  const token = await make()
  expect(await ask(token)).toBeDefined()
  published = [second]
  ahead = 599_000
  expect(await ask(token)).toBeDefined()
  ahead = 601_000
  expect(await ask(token)).toBeUndefined()
})

test('many requests with one new token are one check', async () => {
  const token = await make()
  const work = Array.from({ length: 100 }, () => store.prepare?.(`Bearer ${token}`))
  expect(new Set(work).size).toBe(1)
  await work[0]
  expect(store.check('inference', `Bearer ${token}`)).toBeDefined()
})

test('a caller whose JWT has expired loses its rights in what is open', async () => {
  // Thirty seconds are added to its end, which is a whole second, so it has two at least.
  const principal = (await ask(await make({ lifetime: '-27s' })))!
  expect(principal.sees('echo')).toBe(true)
  const end = performance.now() + 15_000
  while (principal.sees('echo')) {
    if (performance.now() > end) throw new Error('It did not end')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect(principal.allows('inference')).toBe(false)
})
