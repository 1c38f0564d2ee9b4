import { createServer } from 'node:http'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { packWorkflow } from '../../model-archiver/pack-workflow.ts'
import { managementClient } from '../support/grpc-clients.ts'
import { CLI, REPOSITORY, startServer, type Server } from '../support/server.ts'
import {
  changeOneByte,
  makeKey,
  packEcho,
  sha256,
  signByHand,
  signersFile,
  writeSigners,
} from '../support/signed-archives.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

const NAMESPACE = 'torchserve-ts-archive'
const store = join(tempDir(), 'store')
const ours = makeKey('release@example.com')
const stranger = makeKey('stranger@example.com')
const signers = signersFile(ours)
const signedMode = { archive_signers_file: signers, require_signed_archives: true }

mkdirSync(store)

type Attack = (archive: string) => unknown

/** What is done to a signed archive, and what the server says. */
const ATTACKS: [string, Attack, RegExp][] = [
  [
    'without a signature',
    (archive) => rmSync(`${archive}.sig`),
    /must be signed.*x\.mar\.sig does not exist/,
  ],
  ['with one changed byte', changeOneByte, /was changed after it was signed/],
  [
    'with another archive’s signature',
    (archive) => copyFileSync(`${other}.sig`, `${archive}.sig`),
    /was changed after it was signed/,
  ],
  [
    'signed by a stranger',
    (archive) => signByHand(archive, stranger, NAMESPACE),
    /signed with the key SHA256:[\w+/]{43}, which is not in archive_signers_file/,
  ],
  [
    'signed for Git',
    (archive) => signByHand(archive, ours, 'git'),
    /for the namespace torchserve-ts-archive/,
  ],
  ['with half a signature', (archive) => truncateSync(`${archive}.sig`, 160), /is not an SSH signature/],
  ['with a signature cut inside', (archive) => cutInside(archive), /signature of the archive is invalid: it/],
  ['with an empty signature', (archive) => truncateSync(`${archive}.sig`, 0), /is not an SSH signature/],
  [
    'with a signature of 8 GiB',
    (archive) => truncateSync(`${archive}.sig`, 8 * 1024 ** 3),
    /at most 16384 bytes/,
  ],
]

/** Keeps both lines that frame it. */
function cutInside(archive: string): void {
  const lines = readFileSync(`${archive}.sig`, 'utf8').trim().split('\n')
  lines.splice(2, 1)
  writeFileSync(`${archive}.sig`, lines.join('\n'))
}

/** A signed archive and another, packed once. */
let good: string
let other: string

/** Puts the signed archive into a store, as NAME. */
function put(folder: string, name: string): string {
  const path = join(folder, name)
  copyFileSync(good, path)
  copyFileSync(`${good}.sig`, `${path}.sig`)
  return path
}

let server: Server

async function register(query: string): Promise<{ status: number; message: string }> {
  const { status, json } = await server.manage('POST', `/models?initial_workers=0&${query}`)
  return { status, message: json.message ?? json.status ?? '' }
}

/** @returns the status and its text */
function registerOverGrpc(request: Record<string, unknown>): Promise<{ code: number; details: string }> {
  const client = managementClient(server.ports.grpcManagement)
  return new Promise((resolve) => {
    client.RegisterModel({ initial_workers: 0, ...request }, (error: unknown) => {
      client.close()
      const { code, details } = (error ?? { code: 0, details: '' }) as { code: number; details: string }
      resolve({ code, details })
    })
  })
}

async function checked(...flags: string[]): Promise<{ code: number; out: string }> {
  const result = await execa(process.execPath, [CLI, ...flags], { cwd: tempDir(), reject: false, all: true })
  return { code: result.exitCode ?? -1, out: result.all ?? '' }
}

beforeAll(async () => {
  good = await packEcho(tempDir(), 'good', { sign: ours })
  other = await packEcho(tempDir(), 'other', { sign: ours })
  server = await startServer({
    modelStore: store,
    config: { ...signedMode, allowed_urls: 'http://127.0.0.1:[0-9]+/[a-z]*[.]mar([?]v=1)?' },
  })
  // The first registration makes the folder of all unpacked archives, which stays.
  put(store, 'first.mar')
  expect((await register('url=first.mar&model_name=first')).status).toBe(200)
})

describe('a server that loads only signed archives', () => {
  test('registers a signed one, and shows hash and signer in describe and log', async () => {
    const archive = put(store, 'good.mar')
    expect((await register('url=good.mar')).status).toBe(200)
    const [described] = await server.describe('good')
    const hash = sha256(archive)
    expect(described).toMatchObject({
      archiveSha256: hash,
      archivePinned: false,
      archiveSignedBy: 'release@example.com',
    })
    const line = `registered from good.mar, SHA-256 ${hash}, signed by release@example.com`
    expect(server.output.join('\n')).toContain(line)
  })

  test.each(ATTACKS)('refuses an archive %s over REST and gRPC', async (_what, attack, message) => {
    const archive = put(store, 'x.mar')
    const before = server.leftovers().sort()
    await attack(archive)
    const rest = await register('url=x.mar')
    expect(rest.message).toMatch(message)
    expect(rest.status).toBe(400)
    expect(await registerOverGrpc({ url: 'x.mar' })).toMatchObject({
      code: 3,
      details: expect.stringMatching(message),
    })
    expect(server.leftovers().sort()).toEqual(before)
  })

  test('refuses a model folder, and a handler that the archive does not name', async () => {
    mkdirSync(join(store, 'folder'), { recursive: true })
    copyFileSync(join(REPOSITORY, 'model-store/echo/handler.ts'), join(store, 'folder/handler.ts'))
    expect((await register('url=folder')).message).toMatch(
      /folder must be an archive, because require_signed_archives is set/,
    )
    put(store, 'y.mar')
    const { status, message } = await register('url=y.mar&handler=/tmp/evil.py:run')
    expect([status, message]).toEqual([400, expect.stringMatching(/Parameter handler is not supported/)])
  })

  test('refuses workflow archives and their models by the same rules', async () => {
    put(store, 'node.mar')
    const files = { workflowName: 'wf', specFile: join(store, 'wf.yaml'), exportPath: store, force: true }
    const handler = join(REPOSITORY, 'tests/support/handlers/workflow/functions.ts')
    writeFileSync(
      files.specFile,
      'models: {min-workers: 1, max-workers: 1, a: {url: node.mar}}\ndag: {a: []}\n',
    )
    await packWorkflow({ ...files, handler })
    const unsigned = await server.manage('POST', '/workflows?url=wf.war')
    expect(unsigned.json.message).toMatch(/must be signed.*wf\.war\.sig does not exist/)
    expect(unsigned.status).toBe(400)
    await packWorkflow({ ...files, handler, sign: ours })
    const signed = await server.manage('POST', '/workflows?url=wf.war')
    expect(signed.json.status).toMatch(/has been registered/)
    expect((await server.manage('GET', '/workflows/wf')).json[0]).toMatchObject({
      archiveSha256: sha256(join(store, 'wf.war')),
      archiveSignedBy: 'release@example.com',
    })
    await server.manage('DELETE', '/workflows/wf')
    rmSync(join(store, 'node.mar.sig'))
    const node = await server.manage('POST', '/workflows?url=wf.war')
    expect(node.json.message).toMatch(/wf__a failed to register.*must be signed/)
  })

  test('refuses a key as soon as it is removed from the file', async () => {
    put(store, 'late.mar')
    writeSigners(signers, stranger)
    try {
      expect((await register('url=late.mar&model_name=late')).message).toMatch(
        /is not in archive_signers_file/,
      )
    } finally {
      writeSigners(signers, ours)
    }
    expect((await register('url=late.mar&model_name=late')).status).toBe(200)
  })

  describe('from a URL', () => {
    const asked: string[] = []
    const served = new Map<string, Buffer>()
    const web = createServer((request, response) => {
      const [path] = request.url!.split('?')
      asked.push(path!)
      const body = served.get(path!)
      response.writeHead(body === undefined ? 404 : 200).end(body)
    })
    let url: string

    beforeAll(async () => {
      web.listen(0, '127.0.0.1')
      await once(web, 'listening')
      url = `http://127.0.0.1:${(web.address() as AddressInfo).port}`
      served.set('/web.mar', readFileSync(good))
      served.set('/web.mar.sig', readFileSync(`${good}.sig`))
    })

    afterAll(() => {
      web.close()
    })

    test('fetches the signature first, and removes both files with the model', async () => {
      const query = `model_name=web&url=${encodeURIComponent(`${url}/web.mar?v=1`)}`
      expect(await register(query)).toMatchObject({ status: 200 })
      expect(asked).toEqual(['/web.mar.sig', '/web.mar'])
      expect(existsSync(join(store, 'web.mar.sig'))).toBe(true)
      await server.manage('DELETE', '/models/web')
      expect([existsSync(join(store, 'web.mar')), existsSync(join(store, 'web.mar.sig'))]).toEqual([
        false,
        false,
      ])
    })

    test.each([
      ['none', undefined, /must be signed/],
      ['one of 1 MB', Buffer.alloc(1_000_000), /Failed to download archive/],
      ['a wrong one', Buffer.from('wrong'), /is not an SSH signature/],
    ])('refuses an archive whose signature is %s, and keeps nothing', async (_what, signature, message) => {
      served.set('/bad.mar', served.get('/web.mar')!)
      served.delete('/bad.mar.sig')
      if (signature !== undefined) served.set('/bad.mar.sig', signature)
      const { status, message: told } = await register(`url=${encodeURIComponent(`${url}/bad.mar`)}`)
      expect([status, told]).toEqual([400, expect.stringMatching(message)])
      expect([existsSync(join(store, 'bad.mar')), existsSync(join(store, 'bad.mar.sig'))]).toEqual([
        false,
        false,
      ])
    })
  })
})

/** The code is the same as for a registration: three kinds are enough. */
const AT_START = /^(without a signature|with one changed byte|signed by a stranger)$/

describe('a start that loads only signed archives', () => {
  test.each(ATTACKS.filter(([what]) => AT_START.test(what)))(
    'fails for an archive %s',
    async (_what, attack, message) => {
      const own = join(tempDir(), 'store')
      mkdirSync(own)
      await attack(put(own, 'x.mar'))
      const start = startServer({ modelStore: own, models: ['x.mar'], config: signedMode })
      await expect(start).rejects.toThrow(message)
    },
  )

  test('leaves out what is not signed from a store that it loads whole, and says so', async () => {
    const own = join(tempDir(), 'store')
    mkdirSync(own)
    put(own, 'good.mar')
    rmSync(`${put(own, 'bad.mar')}.sig`)
    const whole = await startServer({ modelStore: own, models: ['all'], config: signedMode })
    const { models } = (await whole.manage('GET', '/models')).json
    expect(models!.map(({ modelName }) => modelName)).toEqual(['good'])
    expect(whole.output.join('\n')).toMatch(/Failed to load model: bad\.mar: The archive must be signed/)
    await whole.stop()
  })

  test.each([
    [
      'no file with keys',
      { require_signed_archives: true },
      /require_signed_archives needs archive_signers_file/,
    ],
    ['a missing file', { archive_signers_file: '/no/such/file' }, /archive_signers_file .*cannot be used/],
    ['a file without keys', { archive_signers_file: '/dev/null' }, /archive_signers_file .*cannot be used/],
  ])('fails with %s', async (_what, config, message) => {
    await expect(startServer({ config })).rejects.toThrow(message)
  })
})

describe('--check-archive', () => {
  test('tells the hash and the signer, and refuses what the server would refuse', async () => {
    const own = tempDir()
    const archive = put(own, 'x.mar')
    const config = join(own, 'config.properties')
    writeFileSync(
      config,
      Object.entries(signedMode)
        .map(([key, value]) => `${key}=${value}\n`)
        .join(''),
    )
    const good = await checked('--check-archive', archive, '--ts-config', config)
    expect(good.out).toContain(`SHA-256 ${sha256(archive)}\nSigned by release@example.com\n`)
    expect(good.code).toBe(0)
    expect((await checked('--check-archive', archive)).out).toContain('Signature not checked')
    changeOneByte(archive)
    const changed = await checked('--check-archive', archive, '--ts-config', config)
    expect([changed.code, changed.out]).toEqual([2, expect.stringMatching(/changed after it was signed/)])
  })

  test('names the file that is missing', async () => {
    const { code, out } = await checked('--check-archive', 'none.mar')
    expect([code, out]).toEqual([1, expect.stringMatching(/--check-archive: there is no \/.*\/none\.mar$/)])
  })
})
