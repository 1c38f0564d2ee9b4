import { once } from 'node:events'
import fs from 'node:fs'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, jest, test } from '@jest/globals'
import { failure, tempFolder } from './temp.ts'

/** Milliseconds that a slow disk needs to open a file when no removal comes first. */
const SLOW_MS = 1000

afterEach(() => {
  jest.restoreAllMocks()
})

test('a download that fails while a slow disk opens its file leaves no file', async () => {
  const opened = openAfterRemoval()
  // Imported after these functions are replaced, because a module keeps the functions that it imports.
  const { downloadArchive } = await import('../../model-archiver/download.ts')
  const server = createServer((_request, response) => void response.write('too much')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const store = tempFolder()
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x.mar`
  const options = { isAllowed: () => true, allowPrivate: true, maxBytes: 1 }
  const error = await failure(downloadArchive(url, store, options))
  await opened
  expect(error.code).toBe('DOWNLOAD_FAILED')
  expect(readdirSync(store)).toEqual([])
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/**
 * Files that are opened for writing, by whichever function, open after the first removal, or late.
 * @returns settles when the first is open
 */
function openAfterRemoval(): Promise<void> {
  const { open } = fs
  const { open: openPromise, rm } = fs.promises
  let isRemoved: () => void = () => undefined
  let isOpen: () => void = () => undefined
  const removed = new Promise<void>((resolve) => (isRemoved = resolve))
  const opened = new Promise<void>((resolve) => (isOpen = resolve))
  const turn = (): Promise<void> => Promise.race([removed, delay(SLOW_MS)])
  jest.spyOn(fs, 'open').mockImplementation(((path: string, flags: string, mode: number, done: Opened) => {
    const answer: Opened = (...args) => {
      done(...args)
      if (flags === 'wx') isOpen()
    }
    if (flags === 'wx') void turn().then(() => open(path, flags, mode, answer))
    else open(path, flags, mode, answer)
  }) as typeof fs.open)
  jest.spyOn(fs.promises, 'open').mockImplementation(async (path, flags, mode) => {
    if (flags === 'wx') await turn()
    const file = await openPromise(path, flags, mode)
    if (flags === 'wx') isOpen()
    return file
  })
  jest.spyOn(fs.promises, 'rm').mockImplementation(async (...args) => {
    await rm(...args)
    isRemoved()
  })
  return opened
}

type Opened = (error: NodeJS.ErrnoException | null, fd: number) => void
