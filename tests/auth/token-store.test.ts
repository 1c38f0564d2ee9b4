import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createTokenStore } from '../../frontend/auth/create-authorizer.ts'
import type { Gatekeeper } from '../../frontend/auth/gatekeeper.ts'
import { tempDir } from '../support/temp.ts'

const REFUSED = {
  code: 'UNAUTHORIZED',
  message: 'Token Authorization failed. Token either incorrect, expired, or not provided correctly',
}
const REFUSED_ROTATION = {
  code: 'INVALID_API_KEY',
  message: 'Token Authentication failed. Token either incorrect, expired, or not provided correctly',
}

interface KeyFile {
  management: { key: string; 'expiration time': string }
  inference: { key: string; 'expiration time': string }
  API: { key: string }
}

class Fixture {
  readonly folder = tempDir()
  now = Date.UTC(2030, 0, 1)
  store!: Gatekeeper

  async open(): Promise<this> {
    this.store = await createTokenStore({
      enabled: true,
      expirationMin: 60,
      folder: this.folder,
      now: () => this.now,
    })
    return this
  }

  get path(): string {
    return join(this.folder, 'key_file.json')
  }

  get keys(): KeyFile {
    return JSON.parse(readFileSync(this.path, 'utf8')) as KeyFile
  }

  refusal(kind: 'inference' | 'management', header: string | undefined): unknown {
    try {
      this.store.check(kind, header)
      return undefined
    } catch (error) {
      return error
    }
  }
}

const open = () => new Fixture().open()

describe('the key file', () => {
  test('holds three keys in the layout of TorchServe, for its owner only', async () => {
    const { path, keys } = await open()
    expect(Object.keys(keys)).toEqual(['management', 'inference', 'API'])
    expect(keys).toEqual({
      management: { key: expect.any(String), 'expiration time': '2030-01-01T01:00:00.000Z' },
      inference: { key: expect.any(String), 'expiration time': '2030-01-01T01:00:00.000Z' },
      API: { key: expect.any(String) },
    })
    const texts = [keys.management.key, keys.inference.key, keys.API.key]
    for (const text of texts) expect(text).toMatch(/^[A-Za-z0-9_-]{22}$/)
    expect(new Set(texts).size).toBe(3)
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test('goes at the end', async () => {
    const { folder, store } = await open()
    store.close()
    expect(readdirSync(folder)).toEqual([])
  })

  test('stays when another server has written its own', async () => {
    const { path, store } = await open()
    writeFileSync(path, 'of another')
    store.close()
    expect(readFileSync(path, 'utf8')).toBe('of another')
  })

  test('may be gone already', async () => {
    const { path, store } = await open()
    rmSync(path)
    expect(() => store.close()).not.toThrow()
  })

  test('that cannot be written is a configuration error', async () => {
    const folder = join(tempDir(), 'missing')
    await expect(createTokenStore({ enabled: true, expirationMin: 1, folder })).rejects.toMatchObject({
      code: 'CONFIG',
    })
  })
})

describe('a check', () => {
  test('passes the key of its kind only', async () => {
    const fixture = await open()
    const { management, inference, API } = fixture.keys
    expect(fixture.refusal('inference', `Bearer ${inference.key}`)).toBeUndefined()
    expect(fixture.refusal('management', `Bearer \t ${management.key}`)).toBeUndefined()
    for (const other of [management.key, API.key]) {
      expect(fixture.refusal('inference', `Bearer ${other}`)).toMatchObject(REFUSED)
    }
  })

  test('refuses every other header', async () => {
    const fixture = await open()
    const { key } = fixture.keys.inference
    const wrong = [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      key,
      `bearer ${key}`,
      `Bearer${key}`,
      `Bearer ${key} `,
      ` Bearer ${key}`,
      `Bearer x${key}`,
      `Bearer ${key}x`,
      `Bearer ${key.slice(1)}`,
      `Bearer ${key.slice(0, -1)}\u{101}`,
      `Bearer ${key.slice(0, -1)}\0`,
      `Bearer a ${key}`,
    ]
    for (const header of wrong) {
      const isBearer = header?.startsWith('Bearer ') === true
      const hint = isBearer ? '' : '. Send it in the header Authorization: Bearer <token>'
      const message = `${REFUSED.message}${hint}`
      expect(fixture.refusal('inference', header)).toMatchObject({ ...REFUSED, message })
    }
  })

  test('agrees with ^Bearer\\s+(\\S+)$ and equality, whatever the header', async () => {
    const fixture = await open()
    const { key } = fixture.keys.inference
    const part = fc.oneof(
      fc.constantFrom('Bearer', ' ', '\t', key, key.slice(0, 4), key.slice(4), 'x'),
      fc.string({ unit: 'binary', maxLength: 3 }),
    )
    const header = fc.array(part, { maxLength: 5 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(header, (text) => {
        const expected = /^Bearer[ \t\n\v\f\r]+(\S+)$/.exec(text)?.[1] === key
        expect(fixture.refusal('inference', text) === undefined).toBe(expected)
      }),
      { numRuns: 2000 },
    )
  })

  test('refuses an expired key', async () => {
    const fixture = await open()
    const header = `Bearer ${fixture.keys.inference.key}`
    fixture.now += 60 * 60_000 - 1
    expect(fixture.refusal('inference', header)).toBeUndefined()
    fixture.now += 1
    expect(fixture.refusal('inference', header)).toMatchObject(REFUSED)
  })
})

describe('a rotation', () => {
  test('makes a new key of its kind with a new life and keeps the others, even when all have expired', async () => {
    const fixture = await open()
    const before = fixture.keys
    fixture.now += 2 * 60 * 60_000
    await fixture.store.rotate('inference', `Bearer ${before.API.key}`)
    const after = fixture.keys
    expect(after.inference.key).not.toBe(before.inference.key)
    expect(after.inference['expiration time']).toBe('2030-01-01T03:00:00.000Z')
    expect([after.management, after.API]).toEqual([before.management, before.API])
    expect(fixture.refusal('inference', `Bearer ${before.inference.key}`)).toMatchObject(REFUSED)
    expect(fixture.refusal('inference', `Bearer ${after.inference.key}`)).toBeUndefined()
  })

  test('ends what the old key has open, as does the end of its life', async () => {
    const fixture = await open()
    const { keys, store } = fixture
    const management = store.check('management', `Bearer ${keys.management.key}`)
    const inference = store.check('inference', `Bearer ${keys.inference.key}`)
    expect([management.allows('management'), management.allows('inference')]).toEqual([true, false])
    await store.rotate('management', `Bearer ${keys.API.key}`)
    expect([management.allows('management'), inference.allows('inference')]).toEqual([false, true])
    const next = store.check('management', `Bearer ${fixture.keys.management.key}`)
    fixture.now += 60 * 60_000
    expect([next.allows('management'), inference.allows('inference')]).toEqual([false, false])
  })

  test('needs the API key and a kind', async () => {
    const { store, keys } = await open()
    const api = `Bearer ${keys.API.key}`
    await expect(store.rotate('inference', `Bearer ${keys.management.key}`)).rejects.toMatchObject(
      REFUSED_ROTATION,
    )
    await expect(store.rotate('inference', undefined)).rejects.toMatchObject(REFUSED_ROTATION)
    await expect(store.rotate(undefined, api)).rejects.toMatchObject(REFUSED_ROTATION)
    await expect(store.rotate('API', api)).rejects.toMatchObject(REFUSED_ROTATION)
  })

  test('many at once leave one file that holds the keys in force', async () => {
    const fixture = await open()
    const api = `Bearer ${fixture.keys.API.key}`
    const kinds = ['inference', 'management', 'inference', 'management']
    await Promise.all(kinds.map((kind) => fixture.store.rotate(kind, api)))
    expect(readdirSync(fixture.folder)).toEqual(['key_file.json'])
    const { inference, management } = fixture.keys
    expect(fixture.refusal('inference', `Bearer ${inference.key}`)).toBeUndefined()
    expect(fixture.refusal('management', `Bearer ${management.key}`)).toBeUndefined()
  })

  test('that is under way at the end leaves no file', async () => {
    const { folder, store, keys } = await open()
    const rotation = store.rotate('inference', `Bearer ${keys.API.key}`).catch(() => undefined)
    store.close()
    await rotation
    expect(readdirSync(folder)).toEqual([])
  })

  test('that cannot be written leaves the old key in force', async () => {
    const fixture = await open()
    const { inference, API } = fixture.keys
    rmSync(fixture.folder, { recursive: true })
    await expect(fixture.store.rotate('inference', `Bearer ${API.key}`)).rejects.toThrow()
    expect(fixture.refusal('inference', `Bearer ${inference.key}`)).toBeUndefined()
  })
})

test('without authorization everything passes, there is no file and no /token route', async () => {
  const folder = tempDir()
  const store = await createTokenStore({ enabled: false, expirationMin: 60, folder })
  expect(() => store.check('management', undefined)).not.toThrow()
  await expect(store.rotate('inference', 'Bearer x')).rejects.toMatchObject({ code: 'ROUTE_NOT_FOUND' })
  expect(readdirSync(folder)).toEqual([])
  expect(store.keyFile).toBeUndefined()
})
