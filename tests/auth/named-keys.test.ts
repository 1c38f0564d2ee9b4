import { chmodSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { matchesGlob, type Principal, type Scope } from '../../frontend/auth/principal.ts'
import { digestOf } from '../../frontend/auth/gatekeeper.ts'
import { parseApiKeys } from '../../frontend/auth/api-keys-file.ts'
import { NamedKeys } from '../../frontend/auth/named-keys.ts'
import { createTokenStore } from '../../frontend/auth/create-authorizer.ts'
import type { Gatekeeper } from '../../frontend/auth/gatekeeper.ts'
import { tempDir } from '../support/temp.ts'
import { execFileSync } from '../support/tools.ts'

const START = Date.UTC(2030, 0, 1)
const open: { close(): void }[] = []

afterEach(() => {
  for (const each of open.splice(0)) each.close()
})

interface Entry {
  name: string
  sha256: string
  scopes: Scope[]
  models?: string[]
  expires?: string
  previous?: { sha256: string; expires: string }
}

function entry(name: string, more: Partial<Entry> = {}): Entry {
  return { name, sha256: digestOf(`key-of-${name}`), scopes: ['inference'], ...more }
}

class KeyRig {
  readonly clock = { now: START }
  readonly path = join(tempDir(), 'keys.yaml')
  readonly warnings: string[] = []
  store!: Gatekeeper

  async open(keys: Entry[]): Promise<this> {
    this.write(JSON.stringify({ keys }))
    const now = (): number => this.clock.now
    const warn = (message: string): void => void this.warnings.push(message)
    const source = new NamedKeys({ path: this.path, now, warn })
    open.push(source)
    await source.open()
    this.store = await createTokenStore({ enabled: false, expirationMin: 60, now, sources: [source] })
    return this
  }

  /** As an editor does it: a new file in the place of the old one. */
  write(text: string): void {
    writeFileSync(`${this.path}.new`, text)
    renameSync(`${this.path}.new`, this.path)
  }

  check(scope: Scope | 'any', token: string, remoteAddress?: string): Principal | undefined {
    try {
      return this.store.check(scope, `Bearer ${token}`, { remoteAddress })
    } catch (error) {
      expect(error).toMatchObject({ code: 'UNAUTHORIZED' })
      return undefined
    }
  }

  /** Resolves when the server has noticed a change. */
  async until(isTrue: () => boolean): Promise<void> {
    const end = performance.now() + 15_000
    while (!isTrue()) {
      if (performance.now() > end) throw new Error('The change was not noticed')
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
}

const openRig = (keys: Entry[]): Promise<KeyRig> => new KeyRig().open(keys)

test('a key has its scopes and its models, and nothing else', async () => {
  const rig = await openRig([entry('app', { scopes: ['inference', 'metrics'], models: ['llama*', 'echo'] })])
  const app = rig.check('inference', 'key-of-app')!
  expect([app.name, app.kind, app.seesAll]).toEqual(['app', 'api key', false])
  expect(['llama', 'llama-3', 'echo', 'echo2', 'xllama', ''].map((name) => app.sees(name))).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
  ])
  expect(app.allows('metrics', 'echo')).toBe(true)
  expect(app.allows('management', 'echo')).toBe(false)
  expect(rig.check('metrics', 'key-of-app')).toBe(app)
  // Where any scope is enough.
  expect(rig.check('any', 'key-of-app')).toBe(app)
  expect(rig.check('management', 'key-of-app')).toBeUndefined()
  expect(rig.check('inference', 'key-of-nobody')).toBeUndefined()
  expect(rig.check('inference', digestOf('key-of-app'))).toBeUndefined()
})

test.each(['keys', 'client_certificates'])('%s: management is for all models or none', (kind) => {
  const parse = (models?: string[]): unknown => {
    const { sha256, ...rest } = entry('ops', {
      scopes: ['inference', 'management'],
      ...(models && { models }),
    })
    const own = kind === 'keys' ? { ...rest, sha256 } : { ...rest, common_name: 'ops' }
    return parseApiKeys('k.json', JSON.stringify({ [kind]: [own] }))
  }
  for (const models of [undefined, ['*'], ['echo', '**']]) expect(parse(models)).toBeDefined()
  for (const models of [['echo'], ['a*', 'b'], ['?*']])
    expect(() => parse(models)).toThrow(
      `The keys file k.json cannot be used: ${kind}[0].models must not be set with the scope management, which is for all models`,
    )
})

test('patterns take linear time, whatever the name', () => {
  expect(['ab', 'aXb', 'aXbYb', 'aXbY', 'b'].map((name) => matchesGlob('a*b', name))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
  expect(matchesGlob('ab*ba', 'aba')).toBe(false)
  expect(matchesGlob('*x*y*', '__x__y__')).toBe(true)
  expect(matchesGlob(`${'*a'.repeat(50)}*b`, 'a'.repeat(500_000))).toBe(false)
})

test('a revoked key ends, the objects of its open calls too, and other keys notice nothing', async () => {
  const rig = await openRig([entry('app'), entry('other')])
  const [app, other] = [rig.check('inference', 'key-of-app')!, rig.check('inference', 'key-of-other')!]
  rig.write(JSON.stringify({ keys: [entry('other')] }))
  await rig.until(() => rig.check('inference', 'key-of-app') === undefined)
  expect([app.sees('echo'), app.allows('inference')]).toEqual([false, false])
  expect(rig.check('inference', 'key-of-other')).toBe(other)
})

test('of a key that was rotated the old one works for a while, as the same caller', async () => {
  const rig = await openRig([entry('app')])
  const before = rig.check('inference', 'key-of-app')
  const previous = { sha256: digestOf('key-of-app'), expires: new Date(START + 1_000).toISOString() }
  rig.write(JSON.stringify({ keys: [entry('app', { sha256: digestOf('new-key'), previous })] }))
  await rig.until(() => rig.check('inference', 'new-key') !== undefined)
  expect(rig.check('inference', 'new-key')).toBe(before)
  expect(rig.check('inference', 'key-of-app')).toBe(before)
  rig.clock.now += 1_000
  expect(rig.check('inference', 'key-of-app')).toBeUndefined()
  expect(rig.check('inference', 'new-key')).toBe(before)
})

test('a key that another entry calls its previous one keeps its own rights', async () => {
  const previous = { sha256: digestOf('key-of-app'), expires: new Date(START + 1_000).toISOString() }
  const rig = await openRig([entry('app'), entry('admin', { scopes: ['management'], previous })])
  expect(rig.check('inference', 'key-of-app')?.name).toBe('app')
  expect(rig.check('management', 'key-of-app')).toBeUndefined()
})

test('a key ends when it expires, and that is no guess', async () => {
  const rig = await openRig([
    entry('app', { expires: new Date(START + 1_000).toISOString() }),
    entry('other'),
  ])
  const app = rig.check('inference', 'key-of-app', '10.0.0.1')!
  rig.clock.now += 1_000
  for (let i = 0; i < 20; i++) expect(rig.check('inference', 'key-of-app', '10.0.0.2')).toBeUndefined()
  expect(app.sees('echo')).toBe(false)
  expect(rig.check('inference', 'key-of-other', '10.0.0.2')).toBeDefined()
})

test('who guesses keys is slowed down by address', async () => {
  const rig = await openRig([entry('app')])
  for (let i = 0; i < 10; i++) rig.check('inference', `guess-${i}`, '10.0.0.1')
  expect(rig.check('inference', 'key-of-app', '10.0.0.1')).toBeUndefined()
  expect(rig.check('inference', 'key-of-app', '10.0.0.2')).toBeDefined()
  rig.clock.now += 1_000
  expect(rig.check('inference', 'key-of-app', '10.0.0.1')).toBeDefined()
})

test.each([
  ['a pipe', (path: string) => execFileSync('mkfifo', [path]), 'must be a regular file'],
  ['a device without end', (path: string) => symlinkSync('/dev/zero', path), 'must be a regular file'],
  [
    'a file of a gigabyte',
    (path: string) => {
      writeFileSync(path, '')
      truncateSync(path, 1 << 30)
    },
    'must have at most',
  ],
])('%s in its place changes nothing, and the file that comes back is read', async (_what, put, why) => {
  const rig = await openRig([entry('app')])
  rmSync(rig.path)
  put(rig.path)
  await rig.until(() => rig.warnings.some((warning) => warning.includes(why)))
  expect(rig.check('inference', 'key-of-app')).toBeDefined()
  rig.write(JSON.stringify({ keys: [entry('other')] }))
  await rig.until(() => rig.check('inference', 'key-of-app') === undefined)
  expect(rig.check('inference', 'key-of-other')).toBeDefined()
})

test.each([
  ['no YAML', '{"keys": [', 'keys.yaml'],
  [
    'an unknown field',
    JSON.stringify({ keys: [{ ...entry('x'), scope: 'all' }] }),
    'keys[0].scope is not supported',
  ],
  ['a hash that is none', JSON.stringify({ keys: [{ ...entry('x'), sha256: 'secret' }] }), '64 hexadecimal'],
  [
    'a scope that is none',
    JSON.stringify({ keys: [{ ...entry('x'), scopes: ['all'] }] }),
    'keys[0].scopes[0] must be one of',
  ],
  ['two keys of a name', JSON.stringify({ keys: [entry('x'), entry('x')] }), 'same name'],
])('a file with %s changes nothing, and says why once', async (_what, text, why) => {
  const rig = await openRig([entry('app')])
  rig.write(text)
  await rig.until(() => rig.warnings.length > 0)
  expect(rig.check('inference', 'key-of-app')).toBeDefined()
  rmSync(rig.path)
  await rig.until(() => rig.warnings.length > 1)
  expect(rig.warnings[0]).toContain(why)
  expect(rig.warnings[0]).toContain('stays in force')
  expect(rig.check('inference', 'key-of-app')).toBeDefined()
  rig.write(JSON.stringify({ keys: [] }))
  await rig.until(() => rig.check('inference', 'key-of-app') === undefined)
  expect(rig.warnings.slice(2)).toEqual([expect.stringContaining('has no entries: no API key is valid')])
})

test('a file that every user may change is told when it comes about: at the start, later, and again', async () => {
  const rig = await openRig([entry('app')])
  const tellsOf = (): number => rig.warnings.filter((line) => line.includes('chmod o-w')).length
  expect(tellsOf()).toBe(0)
  chmodSync(rig.path, 0o666)
  await rig.until(() => tellsOf() === 1)
  // While it stays so, another warning would say nothing new.
  writeFileSync(rig.path, 'keys: 1')
  await rig.until(() => rig.warnings.some((line) => line.includes('stays in force')))
  rig.write(JSON.stringify({ keys: [entry('other')] }))
  await rig.until(() => rig.check('inference', 'key-of-other') !== undefined)
  expect(tellsOf()).toBe(1)
  chmodSync(rig.path, 0o602)
  await rig.until(() => tellsOf() === 2)
  const late = new NamedKeys({
    path: rig.path,
    now: Date.now,
    warn: (message) => void rig.warnings.push(message),
  })
  open.push(late)
  await late.open()
  expect(tellsOf()).toBe(3)
})

test('a start with a file that cannot be used fails', async () => {
  const rig = new KeyRig()
  await expect(rig.open([entry('two words')])).rejects.toMatchObject({ code: 'CONFIG' })
})

test('a file whose folder every user may change is told, unless only owners may rename in it', async () => {
  const rig = await openRig([entry('app')])
  const folder = dirname(rig.path)
  const tells = (): string[] => rig.warnings.filter((line) => line.includes('chmod o-w'))
  chmodSync(folder, 0o1777)
  rig.write(JSON.stringify({ keys: [entry('other')] }))
  await rig.until(() => rig.check('inference', 'key-of-other') !== undefined)
  expect(tells()).toEqual([])
  chmodSync(folder, 0o777)
  await rig.until(() => tells().length === 1)
  expect(tells()[0]).toBe(`${folder} can be changed by every user of this machine: chmod o-w ${folder}`)
})
