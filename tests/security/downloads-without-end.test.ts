import { readdirSync, statfsSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { userDownload } from '../../model-archiver/user-download.ts'
import { failure, tempFolder } from '../model-archiver/temp.ts'
import { serve } from '../model-archiver/web-server.ts'

const MIB = 1024 ** 2
const signal = new AbortController().signal

/** Sends for as long as somebody reads. */
function endless(response: ServerResponse): void {
  const piece = Buffer.alloc(MIB)
  const send = (): void => {
    while (!response.destroyed && response.write(piece));
  }
  response.on('drain', send)
  send()
}

test('a file without a size and without an end leaves room on the disk, and nothing of itself', async () => {
  const origin = await serve((_request, response) => endless(response))
  const folder = tempFolder()
  const { bavail, bsize } = statfsSync(folder)
  const minFreeBytes = bavail * bsize - 40 * MIB
  const target = join(folder, 'm.gguf')
  // The product has no such limit here; a test that goes wrong must not fill the disk.
  const options = { signal, minFreeBytes, maxBytes: 400 * MIB }
  const error = await failure(userDownload(`${origin}/m.gguf`, target, options))
  expect(error.code).toBe('DOWNLOAD_FAILED')
  expect(error.message).toMatch(/its server does not say its size, and \S+ must keep \d+ bytes free$/)
  expect(readdirSync(folder)).toEqual([])
})
