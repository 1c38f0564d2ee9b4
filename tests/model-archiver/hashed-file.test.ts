import { createHash, randomBytes } from 'node:crypto'
import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { HashedFile } from '../../model-archiver/hashed-file.ts'
import { execFileSync } from '../support/tools.ts'
import { failure, tempFolder } from './temp.ts'

const KIB = 1024

async function bytesOf(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return Buffer.concat(parts)
}

describe('a hashed file', () => {
  test.each([0, 1, 64 * KIB, 64 * KIB + 1, 3000 * KIB])(
    'of %i bytes returns what was hashed',
    async (size) => {
      const content = randomBytes(size)
      const path = join(tempFolder({ x: content }), 'x')
      const file = await HashedFile.open(path)
      expect(file.size).toBe(size)
      expect(file.sha256).toBe(createHash('sha256').update(content).digest('hex'))
      expect((await bytesOf(file.read())).equals(content)).toBe(true)
      for (const [start, end] of [
        [0, Math.min(4, size)],
        [size >> 1, size],
        [size, size],
      ] as const)
        expect((await bytesOf(file.read(start, end))).equals(content.subarray(start, end))).toBe(true)
      await file.close()
    },
  )

  test('fails for bytes that were changed after it was hashed, and only for those', async () => {
    const path = join(tempFolder({ x: Buffer.alloc(300 * KIB) }), 'x')
    const file = await HashedFile.open(path)
    writeSync(openSync(path, 'r+'), Buffer.from('!'), 0, 1, 200 * KIB)
    expect((await bytesOf(file.read(0, 128 * KIB))).length).toBe(128 * KIB)
    expect(await failure(bytesOf(file.read(199 * KIB, 201 * KIB)))).toMatchObject({
      code: 'INVALID_ARCHIVE',
      message: 'The archive was changed while it was read. Try again.',
    })
    await file.close()
  })

  test('does not wait for a writer when the path is a pipe', async () => {
    const path = join(tempFolder(), 'pipe')
    execFileSync('mkfifo', [path])
    expect((await failure(HashedFile.open(path))).message).toBe('The archive must be a file.')
  })
})
