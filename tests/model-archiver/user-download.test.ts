import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { httpGet, PrivateAddressError } from '../../model-archiver/http-get.ts'
import { hubToken } from '../../model-archiver/hub.ts'
import { userDownload, type UserDownload } from '../../model-archiver/user-download.ts'
import { Hub, sha256 } from '../support/hub.ts'
import { failure, tempFolder } from './temp.ts'
import { serve } from './web-server.ts'

const CONTENT = randomBytes(300_000)
const FILE = 'org/model/resolve/main/model.gguf'

const signal = new AbortController().signal

async function hubWithModel(): Promise<Hub> {
  const hub = await Hub.start()
  hub.add('org/model', { 'model.gguf': CONTENT })
  return hub
}

function download(hub: Hub, target: string, options: Partial<UserDownload> = {}) {
  return userDownload(`${hub.endpoint}/${FILE}`, target, { signal, ...options })
}

test('a file is checked against the SHA-256 that the hub says', async () => {
  const hub = await hubWithModel()
  const folder = tempFolder()
  const downloaded = await download(hub, join(folder, 'model.gguf'))
  expect(downloaded).toMatchObject({ sha256: sha256(CONTENT), checked: true })
  expect(readFileSync(join(folder, 'model.gguf')).equals(CONTENT)).toBe(true)
  expect(readdirSync(folder)).toEqual(['model.gguf'])
})

test('a connection that breaks ends the download, and nothing of the file stays', async () => {
  const hub = await hubWithModel()
  hub.cuts.push(120_000)
  const folder = tempFolder()
  const { code, message } = await failure(download(hub, join(folder, 'model.gguf')))
  expect([code, message]).toEqual(['DOWNLOAD_FAILED', expect.stringMatching(/: the connection ended early$/)])
  expect(readdirSync(folder)).toEqual([])
})

test('a file with another SHA-256 than the hub says is removed', async () => {
  const hub = await hubWithModel()
  hub.wrongSha256 = 'a'.repeat(64)
  const folder = tempFolder()
  const { message } = await failure(download(hub, join(folder, 'model.gguf')))
  expect(message).toContain(`its SHA-256 must be ${'a'.repeat(64)}, found ${sha256(CONTENT)}`)
  expect(readdirSync(folder)).toEqual([])
})

test('an answer that says unchanged, though nobody asked that, is no file', async () => {
  const origin = await serve((_request, response) => void response.writeHead(304).end())
  const folder = tempFolder()
  const { message } = await failure(userDownload(`${origin}/m.gguf`, join(folder, 'm.gguf'), { signal }))
  expect(message).toMatch(/the answer was 304$/)
  expect(readdirSync(folder)).toEqual([])
})

test('a file that is too large is not read', async () => {
  const hub = await hubWithModel()
  const folder = tempFolder()
  const { message } = await failure(download(hub, join(folder, 'model.gguf'), { maxBytes: 1000 }))
  expect(message).toMatch(/it has 300000 bytes, more than 1000$/)
  expect(readdirSync(folder)).toEqual([])
})

test('the token goes to the host that the user named, and to no other', async () => {
  const hub = await hubWithModel()
  hub.token = 'hf_secret'
  const target = join(tempFolder(), 'model.gguf')
  const refused = await failure(download(hub, target))
  expect(refused.message).toMatch(/the answer was 401; if it is on Hugging Face, set HF_TOKEN$/)
  await download(hub, target, { bearer: 'hf_secret' })
  expect(hub.asked.map(({ authorization }) => authorization)).toEqual([
    undefined,
    'Bearer hf_secret',
    undefined, // the store is another origin
  ])
})

test.each([
  ['http://[::1]:1/x.gguf', /redirects to \[::1\]:1, and ::1 is a loopback or private address/],
  ['http://169.254.169.254/x.gguf', /169\.254\.169\.254 is a loopback or private address/],
  ['file:///etc/passwd', /redirects to file:\/\/\/etc\/passwd, which is not supported/],
])('a redirect to %s is refused: the user did not name it', async (location, message) => {
  const origin = await serve((_request, response) => response.writeHead(302, { location }).end())
  const folder = tempFolder()
  const found = await failure(userDownload(`${origin}/x.gguf`, join(folder, 'x.gguf'), { signal }))
  expect(found.message).toMatch(message)
})

test('an answer whose head does not end is given up, though it is never idle', async () => {
  const raw = createTcpServer((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nx-slow: ')
    const drip = setInterval(() => socket.write('x'), 20)
    socket.on('close', () => clearInterval(drip)).on('error', () => undefined)
  }).listen(0, '127.0.0.1')
  await once(raw, 'listening')
  const url = `http://127.0.0.1:${(raw.address() as AddressInfo).port}/x.gguf`
  const { message } = await failure(userDownload(url, join(tempFolder(), 'x.gguf'), { signal, idleMs: 300 }))
  raw.close()
  expect(message).toMatch(/no answer arrived in full within 0\.3 s$/)
})

test('a name that must be public may only lead to the address that is also allowed', async () => {
  const origin = await serve((_request, response) => response.end('here'))
  const url = new URL(`http://localhost:${new URL(origin).port}`)
  const get = (alsoAllowed?: string) =>
    httpGet(url, { headers: {}, allowPrivate: false, alsoAllowed, idleMs: 5_000, signal })
  const answer = await get('127.0.0.1')
  answer.destroy()
  expect(answer.statusCode).toBe(200)
  for (const other of [undefined, '127.0.0.2']) await expect(get(other)).rejects.toThrow(PrivateAddressError)
})

test('a file whose size is not announced is read as far as it may go', async () => {
  const origin = await serve((_request, response) => response.writeHead(200).end('abcdefghij'))
  const target = join(tempFolder(), 'x.gguf')
  const downloading = userDownload(`${origin}/x.gguf`, target, { signal, maxBytes: 9 })
  expect((await failure(downloading)).message).toMatch(/it has more than 9 bytes$/)
  expect(existsSync(target)).toBe(false)
})

test('redirects in a circle end', async () => {
  const origin = await serve((_request, response) => response.writeHead(302, { location: '/x' }).end())
  const target = join(tempFolder(), 'x.gguf')
  const { message } = await failure(userDownload(`${origin}/x.gguf`, target, { signal }))
  expect(message).toMatch(/there are more than 5 redirects$/)
})

test('a server that sends nothing more ends the download', async () => {
  const origin = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('x')
  })
  const target = join(tempFolder(), 'x.gguf')
  const { message } = await failure(userDownload(`${origin}/x.gguf`, target, { signal, idleMs: 100 }))
  expect(message).toMatch(/no data arrived for 0\.1 s/)
})

test("the token is found as the hub's own client finds it", async () => {
  const folder = tempFolder({
    token: 'of the file\n',
    'huggingface/token': 'of-the-cache\n',
    other: 'named\n',
  })
  expect(await hubToken({ HF_TOKEN: ' given\n', HF_HOME: folder })).toBe('given')
  expect(await hubToken({ HF_TOKEN_PATH: join(folder, 'other'), HF_HOME: folder })).toBe('named')
  expect(await hubToken({ XDG_CACHE_HOME: folder })).toBe('of-the-cache')
  expect(await hubToken({ HF_HOME: folder })).toBeUndefined() // a header cannot hold it
  expect(await hubToken({ HF_HOME: join(folder, 'nowhere') })).toBeUndefined()
  expect(await hubToken({ HF_TOKEN: 'given', HF_HUB_DISABLE_IMPLICIT_TOKEN: '1' })).toBeUndefined()
})
