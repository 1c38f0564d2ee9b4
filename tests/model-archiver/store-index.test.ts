import { copyFileSync, readdirSync, readlinkSync, rmSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { StoreIndex } from '../../model-archiver/repository.ts'
import { packEcho } from '../support/echo-archive.ts'
import { tempDir } from '../support/temp.ts'

const ARCHIVES = 150

/** What a call gives, and how many archives of the store were open at once, at most. */
async function watched<T>(store: string, call: Promise<T>): Promise<{ result: T; mostOpen: number }> {
  let mostOpen = 0
  const look = setInterval(() => {
    const open = readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`)]
      } catch {
        return [] // closed meanwhile
      }
    })
    mostOpen = Math.max(mostOpen, open.filter((path) => path.startsWith(store)).length)
  }, 0)
  try {
    return { result: await call, mostOpen }
  } finally {
    clearInterval(look)
  }
}

test('an index of a store opens a few archives at a time, however many ask, and each only once', async () => {
  const store = tempDir()
  const archive = await packEcho(tempDir(), 'echo')
  for (let i = 0; i < ARCHIVES; i++) copyFileSync(archive, join(store, `m${i}.mar`))
  const index = new StoreIndex(store)
  const first = await watched(store, Promise.all([index.models(), index.models(), index.models()]))
  expect(first.result.map((models) => models.length)).toEqual([ARCHIVES, ARCHIVES, ARCHIVES])
  expect(first.result[0][7]).toMatchObject({ name: 'echo', version: '1.0' })
  expect(first.mostOpen).toBeGreaterThan(0)
  expect(first.mostOpen).toBeLessThanOrEqual(4)
  const again = await watched(store, index.models())
  expect([again.result.length, again.mostOpen]).toEqual([ARCHIVES, 0])
})

test('an archive is read again when its file was changed, replaced or removed', async () => {
  const [store, other] = [tempDir(), tempDir()]
  const path = await packEcho(store, 'one')
  const index = new StoreIndex(store)
  const names = async (): Promise<string[]> => (await index.models()).map(({ name }) => name)
  expect(await names()).toEqual(['one'])
  copyFileSync(await packEcho(other, 'two'), path)
  utimesSync(path, 1, 1)
  expect(await names()).toEqual(['two'])
  rmSync(path)
  expect(await names()).toEqual([])
})
