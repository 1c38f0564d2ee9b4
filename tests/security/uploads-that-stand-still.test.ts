import { readdirSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { ArchiveUploads, type Upload } from '../../frontend/models/archive-uploads.ts'
import { tempDir } from '../support/temp.ts'

const uploads = (modelStore: string): ArchiveUploads =>
  new ArchiveUploads({ modelStore, maxDownloadSize: 1000, minFreeDisk: 0, requireSignedArchives: false })

/** An upload whose bytes come when it is told so. */
class Standing {
  readonly upload: Upload
  readonly begun: Promise<void>
  arrive!: () => void

  constructor(name: string, isNarrow: boolean) {
    const arrived = new Promise<void>((resolve) => (this.arrive = resolve))
    let begin!: () => void
    this.begun = new Promise((resolve) => (begin = resolve))
    async function* bytes(): AsyncGenerator<Uint8Array> {
      begin()
      await arrived
      yield Buffer.from('archive')
    }
    this.upload = { name, announced: undefined, sha256: undefined, isNarrow, open: bytes }
  }
}

test('uploads of keys of some models that stand still leave half of the places to operators', async () => {
  const store = tempDir()
  const all = uploads(store)
  const begin = async (name: string, isNarrow: boolean) => {
    const standing = new Standing(name, isNarrow)
    const done = all.receive(standing.upload)
    await Promise.race([standing.begun, done])
    return { standing, done }
  }
  const narrow = [await begin('a.mar', true), await begin('b.mar', true)]
  await expect(begin('c.mar', true)).rejects.toMatchObject({
    code: 'RATE_LIMITED',
    message: '2 archives are uploaded now by keys of some models. Try again later.',
  })
  const wide = [await begin('d.mar', false), await begin('e.mar', false)]
  await expect(begin('f.mar', false)).rejects.toMatchObject({ code: 'RATE_LIMITED' })

  narrow[0]!.standing.arrive()
  await narrow[0]!.done
  const next = await begin('c.mar', true)
  for (const { standing, done } of [narrow[1]!, ...wide, next]) {
    standing.arrive()
    await done
  }
  expect(readdirSync(store).sort()).toEqual(['a.mar', 'b.mar', 'c.mar', 'd.mar', 'e.mar'])
})
