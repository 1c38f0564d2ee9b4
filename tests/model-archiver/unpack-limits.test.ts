import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { ByteReader } from '../../model-archiver/unpack-tar.ts'
import { storedManifest } from '../../model-archiver/manifest.ts'
import { Turns } from '../../model-archiver/turns.ts'
import { UnpackBudget, DEFAULT_UNPACK_LIMITS, RATIO_FREE_BYTES } from '../../model-archiver/unpack-budget.ts'
import { unpackArchive } from '../../model-archiver/unpack.ts'
import { rawTgz, rawZip } from './archives-by-hand.ts'
import { failure, tempFolder } from './temp.ts'

const LARGE = rawTgz([{ name: 'm/a', content: Buffer.alloc(200 * 1024 * 1024) }])

describe('the budget of an archive', () => {
  const budget = (archiveBytes: number, free = 1e12): UnpackBudget =>
    new UnpackBudget({ ...DEFAULT_UNPACK_LIMITS, maxRatio: 10 }, archiveBytes, () => Promise.resolve(free))

  test('allows a ratio, and a small archive any', () => {
    const small = budget(1)
    expect(() => small.declare(RATIO_FREE_BYTES)).not.toThrow()
    expect(() => small.declare(1)).toThrow('more than 10 times its size')
    const large = budget(RATIO_FREE_BYTES)
    expect(() => large.inflate(10 * RATIO_FREE_BYTES)).not.toThrow()
    expect(() => large.inflate(1)).toThrow('unpack it yourself')
  })

  test('leaves room on the disk', async () => {
    const { minFreeBytes } = DEFAULT_UNPACK_LIMITS
    await expect(budget(1e9, minFreeBytes + 4096).reserve(4096)).resolves.toBeUndefined()
    await expect(budget(1e9, minFreeBytes + 4096).reserve(4097)).rejects.toThrow('lower min_free_disk')
    const empty = budget(1e9, minFreeBytes + 4095)
    await expect(empty.reserve(0)).rejects.toThrow('free some space')
  })

  test('looks at the disk again while files are written', async () => {
    let free = 1e9
    const limits = { ...DEFAULT_UNPACK_LIMITS, minFreeBytes: 0 }
    const watched = new UnpackBudget(limits, 1e9, () => Promise.resolve(free))
    await watched.reserve(1e6)
    free = 0
    const rest = async (): Promise<void> => {
      for (let n = 0; n < 20; n++) await watched.reserve(1e6)
    }
    await expect(rest()).rejects.toThrow('min_free_disk')
  })
})

describe('unpacking', () => {
  test('ends when its time is over, and leaves nothing', async () => {
    const folder = tempFolder({ 'x.tgz': LARGE })
    const limits = { timeout: 0.01, maxRatio: 2000 }
    const error = await failure(unpackArchive(join(folder, 'x.tgz'), join(folder, 'out'), { limits }))
    expect(error).toEqual({
      code: 'INVALID_ARCHIVE',
      message:
        'The archive takes longer than 0.01 s to unpack. If you trust it, unpack it yourself and load the folder.',
    })
    expect(readdirSync(folder)).toEqual(['x.tgz'])
  })

  test('is called off, whether it goes on or waits for its turn, and leaves nothing', async () => {
    const folder = tempFolder({ 'x.tgz': LARGE })
    const abort = new AbortController()
    const options = { signal: abort.signal, limits: { maxRatio: 2000 } }
    const all = [1, 2, 3, 4].map((n) =>
      failure(unpackArchive(join(folder, 'x.tgz'), join(folder, `out${n}`), options)),
    )
    const writes = (): boolean =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).some((name) => name.endsWith('/a'))
    while (!writes()) await new Promise((resolve) => setTimeout(resolve, 1))
    abort.abort()
    for (const error of await Promise.all(all)) expect(error.code).toBe('SHUTTING_DOWN')
    expect(readdirSync(folder)).toEqual(['x.tgz'])
    expect((await failure(unpackArchive(join(folder, 'x.tgz'), join(folder, 'out'), options))).code).toBe(
      'SHUTTING_DOWN',
    )
  })
})

test('a manifest is not looked for among more entries than the limit', async () => {
  const manifest = JSON.stringify({
    runtime: 'node',
    model: { modelName: 'm', modelVersion: '1.0', handler: 'h.js' },
  })
  const entries = [{ name: 'a' }, { name: 'MAR-INF/MANIFEST.json', content: manifest }]
  const folder = tempFolder({ 'x.mar': rawZip(entries) })
  expect((await storedManifest(join(folder, 'x.mar'), 2))?.model.modelName).toBe('m')
  expect(await storedManifest(join(folder, 'x.mar'), 1)).toBeUndefined()
})

test('turns are taken in order, and a wait can be called off', async () => {
  const turns = new Turns(1)
  const order: string[] = []
  await turns.take()
  const abort = new AbortController()
  const second = turns.take().then(() => order.push('second'))
  const third = failure(turns.take(abort.signal))
  const fourth = turns.take(new AbortController().signal).then(() => order.push('fourth'))
  abort.abort()
  expect((await third).code).toBe('SHUTTING_DOWN')
  turns.give()
  await second
  expect(order).toEqual(['second'])
  turns.give()
  await fourth
  turns.give()
  await turns.take()
})

test('bytes are read by counts, whatever the pieces', async () => {
  async function* pieces(): AsyncGenerator<Buffer> {
    for (const text of ['ab', '', 'cde', 'f']) yield Buffer.from(text)
  }
  const reader = new ByteReader(pieces())
  expect(String(await reader.exactly(4))).toBe('abcd')
  expect(String(await reader.some(10))).toBe('e')
  await expect(reader.exactly(2)).rejects.toThrow('it ends 1 bytes too early')
  expect(await reader.exactly(1)).toBeUndefined()
})
