import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { writeApiKeys } from '../support/api-keys.ts'
import { rawRequest, type RawRequestOptions } from '../support/raw-http.ts'
import { startServer, type Server, type ServerOptions } from '../support/server.ts'
import { makeKey, packEcho, sha256, signersFile } from '../support/signed-archives.ts'
import { tempDir } from '../support/temp.ts'

const MAX_BYTES = 1024 ** 2
const UPLOADS = { enable_archive_upload: true, max_download_size: MAX_BYTES, min_free_disk: 0 }
const key = makeKey('release@example.com')

/** A packed model, as a client has it. */
let archive: string
let bytes: Buffer
let server: Server
let store: string

beforeAll(async () => {
  archive = await packEcho(tempDir(), 'sent', { sign: key })
  bytes = readFileSync(archive)
  ;({ server, store } = await startWithStore())
})

async function startWithStore(
  options: ServerOptions = {},
  config: ServerOptions['config'] = {},
): Promise<{ server: Server; store: string }> {
  const folder = join(tempDir(), 'store')
  mkdirSync(folder)
  const started = await startServer({ modelStore: folder, ...options, config: { ...UPLOADS, ...config } })
  return { server: started, store: folder }
}

interface Answered {
  status: number
  body: string
}

async function put(
  name: string,
  body: Buffer | string = bytes,
  headers: RawRequestOptions['headers'] = {},
  on = server,
): Promise<Answered> {
  return rawRequest(on.ports.management, `/archives/${name}`, { method: 'PUT', body, headers })
}

/** An upload whose body waits for the server’s go-ahead. */
class Waiting {
  readonly request: ClientRequest
  readonly answer: Promise<Answered>
  /** Resolves to whether the server wants the body. */
  readonly goAhead: Promise<boolean>

  constructor(on: Server, name: string, headers: Record<string, string | number> = {}) {
    this.request = request({
      port: on.ports.management,
      host: '127.0.0.1',
      method: 'PUT',
      path: `/archives/${name}`,
      headers: { expect: '100-continue', 'content-length': bytes.length, ...headers },
    })
    this.answer = new Promise((resolve, reject) => {
      this.request.on('error', reject).on('response', (response: IncomingMessage) => {
        text(response).then((body) => resolve({ status: response.statusCode!, body }), reject)
      })
    })
    this.answer.catch(() => undefined)
    this.goAhead = Promise.race([
      once(this.request, 'continue').then(() => true),
      this.answer.then(() => false),
    ])
    this.request.flushHeaders()
  }
}

function isEmpty(folder: string): boolean {
  return readdirSync(folder).length === 0
}

test('an archive is uploaded, registered with the request that the answer names, and predicts', async () => {
  const { server: own, store: folder } = await startWithStore()
  const { status, body } = await put('sent.mar', bytes, {}, own)
  const hash = sha256(archive)
  const next = `POST /models?url=sent.mar&initial_workers=1&sha256=${hash}`
  expect([status, JSON.parse(body)]).toEqual([
    201,
    { name: 'sent.mar', size: bytes.length, sha256: hash, next },
  ])
  expect(readFileSync(join(folder, 'sent.mar')).equals(bytes)).toBe(true)
  expect((await own.manage('GET', '/models')).json.models).toEqual([])
  const [method = '', path = ''] = next.split(' ')
  expect((await own.manage(method, path)).status).toBe(200)
  const answer = await rawRequest(own.ports.inference, '/predictions/sent', { body: 'hello' })
  expect([answer.status, answer.body]).toEqual([200, 'hello'])
  expect(await own.stop()).toBe(0)
  const lines = readFileSync(join(own.folder, 'logs', 'audit_log.log'), 'utf8')
    .trim()
    .split('\n')
  const line = lines
    .map((each) => JSON.parse(each) as object)
    .find((each) => JSON.stringify(each).includes('upload'))
  expect(line).toMatchObject({
    event: 'management',
    operation: 'upload archive',
    url: 'sent.mar',
    detail: `${bytes.length} bytes, SHA-256 ${hash}`,
    outcome: 'done',
    status: 201,
  })
})

describe('refused', () => {
  test.each([
    ['../sent.mar', 404],
    ['..%2Fsent.mar', 404],
    ['%2e%2e%2fsent.mar', 404],
    ['a/sent.mar', 404],
    ['', 404],
    ['.', 400],
    ['..%5Csent.mar', 400],
    ['sent.mar%00.txt', 400],
    ['sent%00.mar', 400],
    ['.mar', 400],
    ['.sent.mar', 400],
    ['-sent.mar', 400],
    ['sent', 400],
    ['settings.json', 400],
    ['model-settings.json', 400],
    ['sent.war', 400],
    ['sent.sig', 400],
    ['sent.mar.sig.sig', 400],
    ['sent..mar', 400],
    ['__proto__.mar', 400],
    ['sent%0a.mar', 400],
    ['se nt.mar', 400],
    ['se%20nt.mar', 400],
    ['s%C3%A9nt.mar', 400],
    [`${'a'.repeat(125)}.mar`, 400],
    ['%ff.mar', 400],
  ])('the name %j, and nothing is written', async (name, status) => {
    const before = readdirSync(store)
    const answer = await put(name)
    expect([answer.status, readdirSync(store)]).toEqual([status, before])
    expect(existsSync(join(store, '..', 'sent.mar'))).toBe(false)
  })

  test.each([
    ['an empty body', '', {}, 400, 'The body must be the archive'],
    ['a form', 'x', { 'content-type': 'multipart/form-data; boundary=x' }, 400, 'curl -T FILE'],
    ['an encoded body', 'x', { 'content-encoding': 'gzip' }, 415, 'Content-Encoding is not supported'],
    ['a part', 'x', { 'content-range': 'bytes 0-0/9' }, 400, 'Content-Range is not supported'],
    ['too large a body', Buffer.alloc(MAX_BYTES + 1), {}, 413, 'max_download_size'],
  ])('%s', async (_what, body, headers, status, words) => {
    const answered = await put('refused.mar', body, headers)
    expect([answered.status, answered.body]).toEqual([status, expect.stringContaining(words)])
    expect(readdirSync(store)).not.toContain('refused.mar')
  })

  test('another SHA-256 than the one that was asked for', async () => {
    const wrong = await put(`pinned.mar?sha256=${'0'.repeat(64)}`)
    expect([wrong.status, wrong.body]).toEqual([400, expect.stringContaining(sha256(archive))])
    expect(readdirSync(store).filter((name) => name.includes('pinned') || name.startsWith('.'))).toEqual([])
    expect((await put(`pinned.mar?sha256=${sha256(archive).toUpperCase()}`)).status).toBe(201)
  })

  test('a name that the store has, also in another format, before the body is sent', async () => {
    writeFileSync(join(store, 'there.mar'), 'the operator’s')
    mkdirSync(join(store, 'folder'))
    for (const name of ['there.mar', 'there.tar.gz', 'there.mar.sig', 'folder.mar']) {
      const upload = new Waiting(server, name)
      expect([name, await upload.goAhead, (await upload.answer).status]).toEqual([name, false, 409])
      upload.request.destroy()
    }
    expect(readFileSync(join(store, 'there.mar'), 'utf8')).toBe('the operator’s')
    expect(readdirSync(store)).not.toContain('there.mar.sig')
  })

  test('a body that is too large, or too large for the disk, before it is sent', async () => {
    const large = new Waiting(server, 'large.mar', { 'content-length': MAX_BYTES + 1 })
    expect([await large.goAhead, (await large.answer).status]).toEqual([false, 413])
    const { server: full, store: folder } = await startWithStore({}, { min_free_disk: 1e14 })
    const upload = new Waiting(full, 'sent.mar')
    expect(await upload.goAhead).toBe(false)
    expect((await upload.answer).body).toContain('lower min_free_disk')
    expect(isEmpty(folder)).toBe(true)
    for (const { request: sent } of [large, upload]) sent.destroy()
  })

  test('everything while it is off, and the answer says how to switch it on', async () => {
    const off = await startServer({ modelStore: tempDir() })
    const upload = new Waiting(off, 'sent.mar')
    expect(await upload.goAhead).toBe(false)
    const { status, body } = await upload.answer
    expect([status, body]).toEqual([405, expect.stringContaining('enable_archive_upload=true')])
    const closed = await startServer({ modelStore: tempDir(), flags: ['--disable-token-auth'] })
    const answer = await rawRequest(closed.ports.management, '/archives/sent.mar', {
      method: 'PUT',
      body: 'x',
    })
    expect([answer.status, answer.headers['x-hint']]).toEqual([
      405,
      expect.stringContaining('enable-model-api'),
    ])
    await expect(
      startServer({ flags: ['--disable-token-auth'], config: { enable_archive_upload: true } }),
    ).rejects.toThrow('enable_archive_upload needs enable_model_api=true')
  })
})

test('only a management token or a key for a model of that name may upload', async () => {
  const file = writeApiKeys([
    { name: 'some', models: ['cou*'], scopes: ['management'] },
    { name: 'reader', scopes: ['inference'] },
  ])
  const flags = ['--enable-model-api']
  const { server: guarded, store: folder } = await startWithStore({ flags }, { api_keys_file: file })
  const as = (token: string, name: string): Promise<Answered> =>
    put(name, bytes, { authorization: `Bearer ${token}` }, guarded)
  for (const token of ['', 'wrong', 'tsk_reader']) expect((await as(token, 'count.mar')).status).not.toBe(201)
  const foreign = await as('tsk_some', 'echo.mar')
  expect([foreign.status, foreign.body]).toEqual([400, expect.stringContaining('does not allow the archive')])
  expect((await as('tsk_some', 'echo.mar.sig')).status).toBe(400)
  expect(isEmpty(folder)).toBe(true)
  expect((await as('tsk_some', 'count.mar')).status).toBe(201)
})

test('a body that is cut off leaves nothing, nor does one when the server is killed and started again', async () => {
  const { server: own, store: folder } = await startWithStore()
  const cut = new Waiting(own, 'cut.mar')
  expect(await cut.goAhead).toBe(true)
  cut.request.write(bytes.subarray(0, 100))
  await own.until(
    async () => readdirSync(folder).length,
    (count) => count === 1,
  )
  cut.request.destroy()
  await own.until(
    async () => readdirSync(folder).length,
    (count) => count === 0,
  )

  const left = new Waiting(own, 'left.mar')
  expect(await left.goAhead).toBe(true)
  left.request.write(bytes.subarray(0, 100))
  await own.until(
    async () => readdirSync(folder).length,
    (count) => count === 1,
  )
  await own.stop('SIGKILL')
  const [part = ''] = readdirSync(folder)
  expect(part).toMatch(/^\.download-[0-9a-f]{16}\.part$/)
  const hourAgo = Date.now() / 1000 - 3600
  utimesSync(join(folder, part), hourAgo, hourAgo)
  await startServer({ modelStore: folder, config: UPLOADS })
  expect(isEmpty(folder)).toBe(true)
})

test('a server that stops ends an upload, which leaves nothing', async () => {
  const { server: own, store: folder } = await startWithStore()
  const upload = new Waiting(own, 'late.mar')
  expect(await upload.goAhead).toBe(true)
  upload.request.write(bytes.subarray(0, 100))
  await own.until(
    async () => readdirSync(folder).length,
    (count) => count === 1,
  )
  expect(await own.stop()).toBe(0)
  expect(isEmpty(folder)).toBe(true)
  upload.request.destroy()
})

test('of two uploads of one model at once, the second is refused and the first arrives', async () => {
  const first = new Waiting(server, 'twice.mar')
  expect(await first.goAhead).toBe(true)
  for (const name of ['twice.mar', 'twice.tgz', 'twice.mar.sig']) {
    const second = new Waiting(server, name)
    expect([name, await second.goAhead, (await second.answer).status]).toEqual([name, false, 409])
    second.request.destroy()
  }
  first.request.end(bytes)
  expect((await first.answer).status).toBe(201)
  expect(readFileSync(join(store, 'twice.mar')).equals(bytes)).toBe(true)
})

test('of twenty uploads at once, four are taken and the others told to come again', async () => {
  const { server: own, store: folder } = await startWithStore()
  const all = Array.from({ length: 20 }, (_, index) => new Waiting(own, `many-${index}.mar`))
  const taken = await Promise.all(all.map(({ goAhead }) => goAhead))
  expect(taken.filter((each) => each)).toHaveLength(4)
  for (const [index, { request: sent, answer }] of all.entries()) {
    if (taken[index]) sent.end(bytes)
    expect((await answer).status).toBe(taken[index] ? 201 : 429)
    sent.destroy()
  }
  expect(readdirSync(folder)).toHaveLength(4)
  expect((await put('later.mar', bytes, {}, own)).status).toBe(201)
})

test('a body without a length is read no further than the limit', async () => {
  const before = readdirSync(store)
  const socket = connect(server.ports.management, '127.0.0.1').on('error', () => undefined)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  let answer = ''
  socket.on('data', (data: Buffer) => (answer += data.toString()))
  socket.write('PUT /archives/endless.mar HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n')
  const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(0x10000), Buffer.from('\r\n')])
  let isOpen = true
  void closed.then(() => (isOpen = false))
  while (isOpen) {
    if (!socket.write(chunk)) await Promise.race([once(socket, 'drain').catch(() => undefined), closed])
  }
  expect(answer).toMatch(/^HTTP\/1\.1 413 /)
  expect(readdirSync(store)).toEqual(before)
})

test('where archives must be signed, the signature comes first, and a later one replaces it', async () => {
  const signed = { archive_signers_file: signersFile(key), require_signed_archives: true }
  const { server: own, store: folder } = await startWithStore({}, signed)
  const early = new Waiting(own, 'sent.mar')
  expect(await early.goAhead).toBe(false)
  expect((await early.answer).body).toContain('sent.mar.sig does not exist')
  early.request.destroy()
  expect((await put('sent.mar.sig', Buffer.alloc(16 * 1024 + 1), {}, own)).status).toBe(413)
  expect((await put('sent.mar.sig', 'wrong', {}, own)).status).toBe(201)
  const { status, body } = await put('sent.mar.sig', readFileSync(`${archive}.sig`), {}, own)
  expect([status, body]).toEqual([201, expect.stringContaining('"next": "PUT /archives/sent.mar"')])
  expect((await put('sent.mar', bytes, {}, own)).status).toBe(201)
  expect((await put('sent.mar.sig', 'wrong', {}, own)).status).toBe(409)
  expect(readdirSync(folder).sort()).toEqual([basename(archive), `${basename(archive)}.sig`])
  expect((await own.manage('POST', '/models?url=sent.mar')).status).toBe(200)
})

test('an upload whose body is malformed gets 400, and leaves nothing', async () => {
  const socket = connect(server.ports.management, '127.0.0.1')
  const answer = text(socket)
  socket.write(
    'PUT /archives/bad.mar HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno size\r\n',
  )
  expect(await answer).toMatch(/^HTTP\/1\.1 400 /)
  await server.until(
    async () => readdirSync(store).filter((name) => name.includes('bad') || name.startsWith('.')).length,
    (count) => count === 0,
  )
})
