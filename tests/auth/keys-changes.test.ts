import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { digestOf } from '../../frontend/auth/gatekeeper.ts'
import { type KeysChange, NamedKeys } from '../../frontend/auth/named-keys.ts'
import { tempDir } from '../support/temp.ts'

test('whoever wants to know hears which keys came, went and changed, and never a key or a hash', async () => {
  const path = join(tempDir(), 'keys.yaml')
  const write = (text: string): void => {
    writeFileSync(`${path}.new`, text)
    renameSync(`${path}.new`, path)
  }
  const entry = (name: string, key = name, limits = {}) => ({
    name,
    sha256: digestOf(key),
    scopes: ['inference'],
    limits,
  })
  const writeKeys = (...keys: unknown[]): void => write(JSON.stringify({ keys }))
  const changes: KeysChange[] = []
  let heard = (): void => undefined
  const changed = (change: KeysChange): void => {
    changes.push(change)
    heard()
  }
  const next = async (): Promise<KeysChange> => {
    while (changes.length === 0) await new Promise<void>((resolve) => (heard = resolve))
    return changes.shift()!
  }
  writeKeys(entry('stays'), entry('goes'), entry('rotated'), entry('slower'))
  const keys = new NamedKeys({ path, now: Date.now, warn: () => undefined, changed })
  await keys.open()
  writeKeys(
    entry('stays'),
    entry('comes'),
    entry('rotated', 'new'),
    entry('slower', 'slower', { requestsPerSecond: 1 }),
  )
  expect(await next()).toEqual({
    outcome: 'done',
    detail: 'added: api key comes; removed: api key goes; changed: api key rotated, api key slower',
  })
  write('keys: [{')
  expect((await next()).outcome).toBe('failed')
  keys.close()
})
