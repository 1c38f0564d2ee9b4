import { createServer, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { mkdirSync, readdirSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { downloadLimits, locateAndPrepare } from '../../frontend/models/located-model.ts'
import type { ServeError } from '../../common/errors.ts'
import { settingsOf } from '../config/support.ts'
import { tempDir } from '../support/temp.ts'

const closing: (() => void)[] = []

afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** The error of a registration whose archive comes from this server, and what is left in the store. */
async function registered(
  config: string,
  answer: (response: ServerResponse) => void,
  trusted = true,
): Promise<{ message: string | undefined; left: string[] }> {
  const server = createServer((_request, response) => answer(response)).listen(0, '127.0.0.1')
  closing.push(() => {
    server.close()
    server.closeAllConnections()
  })
  await once(server, 'listening')
  const folder = tempDir()
  const store = join(folder, 'store')
  mkdirSync(store)
  const { settings } = settingsOf({ file: `model_store=${store}\n${config}\n` })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/m.mar`
  const context = {
    settings: { ...settings, tempDir: folder },
    trusted,
    signal: new AbortController().signal,
  }
  const message = await locateAndPrepare({ url, synchronous: true }, context).then(
    () => 'no error',
    (error: unknown) => (error as ServeError).detail,
  )
  return { message, left: readdirSync(store) }
}

test('max_unpacked_size: a larger archive is refused, one of that size is read', async () => {
  const send = (bytes: number) => (response: ServerResponse) => void response.end(Buffer.alloc(bytes))
  const over = await registered('max_unpacked_size=1000', send(1001))
  expect(over).toEqual({ message: expect.stringContaining('1000') as unknown, left: [] })
  const exact = await registered('max_unpacked_size=1000', send(1000))
  // It is no archive, which is found out after the download.
  expect(exact.message).toBeUndefined()
})

test('download_timeout: a download that stands still is given up, and leaves nothing', async () => {
  const { message, left } = await registered('download_timeout=0.2', (response) => {
    response.writeHead(200, { 'content-length': '1000' })
    response.write('x')
  })
  expect([message, left]).toEqual([expect.stringContaining('0.2 s'), []])
})

test('allow_private_urls: an address of this machine is good for the operator, for others only with it', async () => {
  const refuse = (response: ServerResponse) => void response.writeHead(404).end()
  const other = await registered('', refuse, false)
  const allowed = await registered('allow_private_urls=true', refuse, false)
  const operator = await registered('', refuse, true)
  expect(allowed.message).toBe(operator.message)
  expect(other.message).not.toBe(operator.message)
})

test('the keys of downloads are seconds and bytes', () => {
  const { settings } = settingsOf({ file: 'download_timeout=7\nmax_unpacked_size=123\n' })
  expect(downloadLimits(settings, {})).toMatchObject({ timeoutMs: 7000, maxBytes: 123 })
})
