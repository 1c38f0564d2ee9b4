import { readdirSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { ArchiveUploads, type Upload } from '../../frontend/models/archive-uploads.ts'
import type { Taker } from '../../common/places.ts'
import { tempDir } from '../support/temp.ts'

const uploads = (modelStore: string): ArchiveUploads =>
  new ArchiveUploads({ modelStore, maxDownloadSize: 1000, minFreeDisk: 0, requireSignedArchives: false })

/** An upload whose bytes come when it is told so. */
class Standing {
  readonly upload: Upload
  readonly begun: Promise<void>
  arrive!: () => void

  constructor(name: string, sender: Taker) {
    const arrived = new Promise<void>((resolve) => (this.arrive = resolve))
    let begin!: () => void
    this.begun = new Promise((resolve) => (begin = resolve))
    async function* bytes(): AsyncGenerator<Uint8Array> {
      begin()
      await arrived
      yield Buffer.from('archive')
    }
    this.upload = { name, announced: undefined, sha256: undefined, sender, open: bytes }
  }
}

const narrow = (key: string): Taker => ({ key, isNarrow: true })
const wide = (key?: string): Taker => ({ key, isNarrow: false })

/** Uploads to a store of their own: each is in its place, or refused, when `begin` resolves. */
function uploadsTo(store: string) {
  const all = uploads(store)
  return async (name: string, sender: Taker) => {
    const standing = new Standing(name, sender)
    const done = all.receive(standing.upload)
    await Promise.race([standing.begun, done])
    const finish = async (): Promise<void> => {
      standing.arrive()
      await done
    }
    return finish
  }
}

const refused = (message: string) => ({ code: 'RATE_LIMITED', message: `${message}. Try again later.` })

test('uploads of keys of some models that stand still leave half of the places to operators', async () => {
  const store = tempDir()
  const begin = uploadsTo(store)
  const first = await begin('a.mar', narrow('one'))
  const others = [await begin('b.mar', narrow('two'))]
  await expect(begin('c.mar', narrow('three'))).rejects.toMatchObject(
    refused('2 archives are uploaded now by keys of some models'),
  )
  others.push(await begin('d.mar', wide()), await begin('e.mar', wide()))
  await expect(begin('f.mar', wide())).rejects.toMatchObject(refused('4 archives are uploaded now'))

  await first()
  others.push(await begin('c.mar', narrow('three')))
  for (const finish of others) await finish()
  expect(readdirSync(store).sort()).toEqual(['a.mar', 'b.mar', 'c.mar', 'd.mar', 'e.mar'])
})

test('uploads of one key that stand still leave half of its places to other keys', async () => {
  const begin = uploadsTo(tempDir())
  const first = await begin('a.mar', narrow('one'))
  await expect(begin('b.mar', narrow('one'))).rejects.toMatchObject(
    refused('This key has 1 of the 4 uploads that may run, as many as one key may'),
  )
  const others = [await begin('b.mar', narrow('two')), await begin('c.mar', wide('three'))]
  await first()
  others.push(await begin('d.mar', wide('three')))
  await expect(begin('e.mar', wide('three'))).rejects.toMatchObject(
    refused('This key has 2 of the 4 uploads that may run, as many as one key may'),
  )
  others.push(await begin('e.mar', wide('four')))
  for (const finish of others) await finish()
})
