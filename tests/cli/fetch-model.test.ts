import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { fetchModel, type FetchOptions } from '../../frontend/cli/fetch-model.ts'
import { Hub, sha256 } from '../support/hub.ts'
import { heldBack } from '../support/held.ts'
import { tempDir } from '../support/temp.ts'

const CONTENT = randomBytes(50_000)
const REPOSITORY = { kind: 'hub', repository: 'org/m' } as const

async function rig() {
  const hub = await Hub.start()
  hub.add('org/m', { 'm.gguf': CONTENT })
  const cache = tempDir()
  const told: string[] = []
  const output = { out: (line: string) => told.push(line), err: (line: string) => told.push(line) }
  const env = { HF_ENDPOINT: hub.endpoint, HF_TOKEN: 'none' }
  const options: FetchOptions = { cache, env, output, signal: new AbortController().signal }
  /** The paths of files that were asked for, since the last call. */
  const files = (): string[] =>
    hub.asked.splice(0).flatMap(({ path }) => (/^\/org\/m\/m/.test(path) ? path : []))
  return { hub, cache, told, options, files, url: `${hub.endpoint}/org/m/resolve/main/m.gguf` }
}

test('a file of the hub is downloaded once, and again when it has lost its size', async () => {
  const { options, files } = await rig()
  const { path } = await fetchModel(REPOSITORY, options)
  expect(files()).toHaveLength(1)
  await fetchModel(REPOSITORY, options)
  expect(files()).toEqual([])
  truncateSync(path, 100)
  await fetchModel(REPOSITORY, options)
  expect(files()).toHaveLength(1)
  expect(readFileSync(path).equals(CONTENT)).toBe(true)
})

test('of a file that two commands want, one downloads it', async () => {
  const { hub, options, told } = await rig()
  const begun = heldBack()
  hub.cuts.push(1000)
  hub.onCut = () => begun.open()
  const stop = new AbortController()
  const first = fetchModel(REPOSITORY, { ...options, signal: stop.signal })
  await begun.opened
  await expect(fetchModel(REPOSITORY, options)).rejects.toMatchObject({
    code: 'CONFLICT',
    message: expect.stringMatching(/^Another command is downloading .*m\.gguf; wait for it/) as unknown,
  })
  stop.abort()
  await expect(first).rejects.toThrow()
  const { path } = await fetchModel(REPOSITORY, options)
  expect(readFileSync(path).equals(CONTENT)).toBe(true)
  expect(told.at(-1)).toMatch(/; its SHA-256 is right$/)
})

test('a URL that was downloaded is asked for again only if its server has another file', async () => {
  const { hub, options, files, url } = await rig()
  const place = { kind: 'url', url } as const
  const { path } = await fetchModel(place, options)
  const before = files().length
  await fetchModel(place, options)
  expect(readFileSync(path).equals(CONTENT)).toBe(true)
  const other = randomBytes(70_000)
  hub.add('org/m', { 'm.gguf': other })
  files()
  await fetchModel(place, options)
  expect([before, readFileSync(path).equals(other)]).toEqual([1, true])
})

test('--sha256 checks a model that was downloaded before, with the hub and without it', async () => {
  const { hub, options } = await rig()
  await fetchModel(REPOSITORY, options)
  const wrong = { ...options, sha256: 'a'.repeat(64) }
  const right = { ...options, sha256: sha256(CONTENT) }
  await expect(fetchModel(REPOSITORY, wrong)).rejects.toMatchObject({ code: 'UNTRUSTED_ARCHIVE' })
  hub.saysSha256 = false
  await expect(fetchModel(REPOSITORY, wrong)).rejects.toMatchObject({ code: 'DOWNLOAD_FAILED' })
  const { path } = await fetchModel(REPOSITORY, right)
  await hub.stop()
  await expect(fetchModel(REPOSITORY, wrong)).rejects.toMatchObject({
    code: 'UNTRUSTED_ARCHIVE',
    message: `The SHA-256 of ${path} must be ${'a'.repeat(64)}, found ${sha256(CONTENT)}`,
  })
  expect(await fetchModel(REPOSITORY, right)).toMatchObject({ path })
})

test('--sha256 checks a file of this machine, too', async () => {
  const { cache, options } = await rig()
  const path = join(cache, 'own.gguf')
  writeFileSync(path, CONTENT)
  const place = { kind: 'path', path } as const
  expect(await fetchModel(place, { ...options, sha256: sha256(CONTENT) })).toEqual({ path })
  await expect(fetchModel(place, { ...options, sha256: 'a'.repeat(64) })).rejects.toMatchObject({
    code: 'UNTRUSTED_ARCHIVE',
  })
})

test('a plain connection to another machine is told, unless a hash checks what arrives', async () => {
  const { options, told } = await rig()
  const signal = AbortSignal.abort()
  const warned = async (url: string, sha256?: string): Promise<string[]> => {
    await expect(
      fetchModel({ kind: 'url', url }, { ...options, signal, ...(sha256 && { sha256 }) }),
    ).rejects.toThrow()
    return told.splice(0).filter((line) => line.includes('not protected'))
  }
  expect(await warned('http://models.example/m.gguf')).toEqual([
    'The connection to models.example is not protected; --sha256 checks what arrives',
  ])
  expect(await warned('http://models.example/m.gguf', 'a'.repeat(64))).toEqual([])
  for (const here of ['127.0.0.1', '[::1]', 'localhost'])
    expect(await warned(`http://${here}:9/m.gguf`)).toEqual([])
  expect(await warned('https://models.example/m.gguf')).toEqual([])
})

test('neither a hub nor a URL names a place outside the cache', async () => {
  const { hub, options, cache, url } = await rig()
  hub.add('org/m', { '../../../../evil.gguf': CONTENT, 'a/../../../evil.gguf': CONTENT })
  await expect(fetchModel(REPOSITORY, options)).rejects.toMatchObject({
    message: 'org/m has no .gguf file',
  })
  for (const name of ['..%2F..%2Fevil.gguf', '%2Fevil.gguf', '.hidden.gguf']) {
    const place = { kind: 'url', url: url.replace('m.gguf', name) } as const
    await expect(fetchModel(place, options)).rejects.toThrow('must be a file name')
  }
  expect(readdirSync(cache, { recursive: true })).toEqual([])
})

test('a hub that cannot be reached: the message has the ways out; one that refuses has its reason alone', async () => {
  const { options } = await rig()
  const way = 'Without access to the hub, serve a .gguf file of this machine, or set HF_ENDPOINT to a mirror'
  const missing = { kind: 'hub', repository: 'org/none' } as const
  const refused = expect(fetchModel(missing, options)).rejects
  await refused.toThrow(/could not be downloaded: the answer was 404; check the name$/)
  const env = { HF_ENDPOINT: 'http://127.0.0.1:9' }
  const alone = { ...options, cache: tempDir(), env }
  await expect(fetchModel(REPOSITORY, alone)).rejects.toThrow(new RegExp(`connection: .*\\. ${way}$`))
})
