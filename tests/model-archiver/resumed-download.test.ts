import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { httpGet, PrivateAddressError } from '../../model-archiver/http-get.ts'
import { hubToken } from '../../model-archiver/hub.ts'
import { downloadResumed, type ResumedDownload } from '../../model-archiver/resumed-download.ts'
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

function download(hub: Hub, target: string, options: Partial<ResumedDownload> = {}) {
  return downloadResumed(`${hub.endpoint}/${FILE}`, target, { signal, ...options })
}

/** A download that is called off once it has that many bytes. @returns where it was to be */
async function cutOff(hub: Hub, at: number, options: Partial<ResumedDownload> = {}): Promise<string> {
  const target = join(tempFolder(), 'model.gguf')
  const stop = new AbortController()
  hub.cuts.push(at)
  hub.onCut = () => undefined
  const onProgress = (bytes: number): void => {
    if (bytes === at) stop.abort()
  }
  const stopped = download(hub, target, { ...options, signal: stop.signal, onProgress })
  await expect(stopped).rejects.toThrow()
  return target
}

test('a download that was cut off goes on where it ended, with the same entity', async () => {
  const hub = await hubWithModel()
  const target = await cutOff(hub, 100_000)
  expect(statSync(`${target}.part`).size).toBe(100_000)

  expect(await download(hub, target)).toMatchObject({ sha256: sha256(CONTENT), checked: true })
  expect(readFileSync(target).equals(CONTENT)).toBe(true)
  expect(readdirSync(join(target, '..'))).toEqual(['model.gguf'])
  const last = hub.asked.at(-1)!
  expect(last).toMatchObject({ range: 'bytes=100000-', status: 206 })
  expect(last.ifRange).toBe(`"${sha256(CONTENT).slice(0, 16)}"`)
})

test('a file that has changed meanwhile is downloaded from its beginning', async () => {
  const hub = await hubWithModel()
  const target = await cutOff(hub, 1000)
  const other = randomBytes(2000)
  hub.add('org/model', { 'model.gguf': other })
  await download(hub, target)
  expect(readFileSync(target).equals(other)).toBe(true)
  expect(hub.asked.at(-1)).toMatchObject({ range: 'bytes=1000-', status: 200 })
})

test('a connection that breaks is made again for the rest, until it is there', async () => {
  const hub = await hubWithModel()
  const target = join(tempFolder(), 'model.gguf')
  hub.cuts.push(120_000, 50_000)
  await download(hub, target)
  expect(readFileSync(target).equals(CONTENT)).toBe(true)
  expect(hub.cuts).toEqual([])
})

test('connections that bring nothing end the download', async () => {
  const hub = await hubWithModel()
  const target = join(tempFolder(), 'model.gguf')
  hub.cuts.push(0, 0, 0)
  const { code } = await failure(download(hub, target))
  expect([code, hub.asked.length]).toEqual(['DOWNLOAD_FAILED', 6])
})

test('a file with another SHA-256 than the hub says is removed', async () => {
  const hub = await hubWithModel()
  hub.wrongSha256 = 'a'.repeat(64)
  const folder = tempFolder()
  const { message } = await failure(download(hub, join(folder, 'model.gguf')))
  expect(message).toContain(`its SHA-256 must be ${'a'.repeat(64)}, found ${sha256(CONTENT)}`)
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
  const found = await failure(downloadResumed(`${origin}/x.gguf`, join(folder, 'x.gguf'), { signal }))
  expect(found.message).toMatch(message)
})

/**
 * A server whose answers follow one after the other. The first one begins a file of ten bytes with three, and
 * breaks off when they have arrived.
 */
async function breakOff(etag: string, ...answers: ((response: ServerResponse) => void)[]) {
  const ranges: (string | undefined)[] = []
  let first: ServerResponse | undefined
  const origin = await serve((request, response) => {
    ranges.push(request.headers.range)
    if (first !== undefined) answers.shift()!(response)
    else (first = response.writeHead(200, { etag, 'content-length': 10 })).write('abc')
  })
  const onProgress = (bytes: number): void => {
    if (bytes === 3) first!.destroy()
  }
  const target = join(tempFolder(), 'x.gguf')
  const downloaded = (more: Partial<ResumedDownload> = {}) =>
    downloadResumed(`${origin}/x.gguf`, target, { signal, onProgress, ...more })
  return { downloaded, target, ranges, onProgress }
}

const whole = (response: ServerResponse) => response.writeHead(200, { etag: '"1"' }).end('abcdefghij')
const rest = (response: ServerResponse) =>
  response.writeHead(206, { etag: '"1"', 'content-range': 'bytes 3-9/10' }).end('defghij')

test('a resumed file with another SHA-256 is read once from its beginning, and removed', async () => {
  const { downloaded, target, ranges } = await breakOff('"1"', rest, whole)
  const { message } = await failure(downloaded({ sha256: 'a'.repeat(64) }))
  expect(message).toContain(`found ${sha256(Buffer.from('abcdefghij'))}`)
  expect([ranges, readdirSync(join(target, '..'))]).toEqual([[undefined, 'bytes=3-', undefined], []])
})

test('a rest that does not fit costs the part, not the download', async () => {
  const wrong = (response: ServerResponse) =>
    response.writeHead(206, { etag: '"1"', 'content-range': 'bytes 3-9/10' }).end('DEFGHIJ')
  const { downloaded, target, ranges } = await breakOff('"1"', wrong, whole)
  await downloaded({ sha256: sha256(Buffer.from('abcdefghij')) })
  expect([ranges, readFileSync(target, 'utf8')]).toEqual([[undefined, 'bytes=3-', undefined], 'abcdefghij'])
})

test('a part of a file with another SHA-256 is not gone on with', async () => {
  const hub = await hubWithModel()
  const target = await cutOff(hub, 1000, { sha256: 'a'.repeat(64) })
  await download(hub, target, { sha256: sha256(CONTENT) })
  expect(hub.asked.at(-1)!.range).toBeUndefined()
})

const OTHER_RESTS: [what: string, head: Record<string, string>, body: string][] = [
  ['begins at another place', { etag: '"1"', 'content-range': 'bytes 5-9/10' }, 'fghij'],
  ['does not say where it begins', { etag: '"1"' }, 'defghij'],
  ['is of another entity', { etag: '"2"', 'content-range': 'bytes 3-9/10' }, 'DEFGHIJ'],
  ['is longer than the file', { etag: '"1"', 'content-range': 'bytes 3-9/10' }, 'defghijklm'],
]

test.each(OTHER_RESTS)(
  'a rest that %s is not appended: the file is read from its beginning',
  async (_what, head, body) => {
    const other = (response: ServerResponse) => response.writeHead(206, head).end(body)
    const { downloaded, target, ranges } = await breakOff('"1"', other, whole)
    await downloaded()
    expect([ranges, readFileSync(target, 'utf8')]).toEqual([[undefined, 'bytes=3-', undefined], 'abcdefghij'])
  },
)

test('a server whose rests never fit is asked for the whole file once', async () => {
  let second: ServerResponse | undefined
  const begin = (response: ServerResponse) => {
    second = response.writeHead(200, { etag: '"1"', 'content-length': 10 })
    second.write('abcd')
  }
  const other = (response: ServerResponse) =>
    response.writeHead(206, { etag: '"1"', 'content-range': 'bytes 5-9/10' }).end('fghij')
  const { downloaded, target, ranges, onProgress } = await breakOff('"1"', other, begin, other)
  const breakAgain = (bytes: number): void => {
    onProgress(bytes)
    if (bytes === 4) second!.destroy()
  }
  const { message } = await failure(downloaded({ onProgress: breakAgain }))
  expect(message).toMatch(/the answer has other bytes than wanted$/)
  // Nothing is left on which the next download would fail again.
  expect(readdirSync(join(target, '..'))).toEqual([])
  expect(ranges).toEqual([undefined, 'bytes=3-', undefined, 'bytes=4-'])
})

test('a rest in several answers is read to its end', async () => {
  const some = (response: ServerResponse) =>
    response.writeHead(206, { etag: '"1"', 'content-range': 'bytes 3-5/10', 'content-length': 3 }).end('def')
  const last = (response: ServerResponse) =>
    response.writeHead(206, { etag: '"1"', 'content-range': 'bytes 6-9/10' }).end('ghij')
  const { downloaded, target, ranges } = await breakOff('"1"', some, last)
  await downloaded()
  expect([ranges, readFileSync(target, 'utf8')]).toEqual([[undefined, 'bytes=3-', 'bytes=6-'], 'abcdefghij'])
})

test('an answer whose head does not end is given up, though it is never idle', async () => {
  const raw = createTcpServer((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nx-slow: ')
    const drip = setInterval(() => socket.write('x'), 20)
    socket.on('close', () => clearInterval(drip)).on('error', () => undefined)
  }).listen(0, '127.0.0.1')
  await once(raw, 'listening')
  const url = `http://127.0.0.1:${(raw.address() as AddressInfo).port}/x.gguf`
  const { message } = await failure(
    downloadResumed(url, join(tempFolder(), 'x.gguf'), { signal, idleMs: 300 }),
  )
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

test('with a weak entity tag nobody knows whose the rest is: the file is read from its beginning', async () => {
  const { downloaded, target, ranges } = await breakOff('W/"1"', whole)
  await downloaded()
  expect([ranges, readFileSync(target, 'utf8')]).toEqual([[undefined, undefined], 'abcdefghij'])
})

test('a server that refuses the range is asked for the whole file', async () => {
  const refuse = (response: ServerResponse) => response.writeHead(416).end()
  const { downloaded, target, ranges } = await breakOff('"1"', refuse, whole)
  await downloaded()
  expect([ranges, readFileSync(target, 'utf8')]).toEqual([[undefined, 'bytes=3-', undefined], 'abcdefghij'])
})

test('a file whose size is not announced is read as far as it may go', async () => {
  const origin = await serve((_request, response) => whole(response))
  const target = join(tempFolder(), 'x.gguf')
  const downloading = downloadResumed(`${origin}/x.gguf`, target, { signal, maxBytes: 9 })
  expect((await failure(downloading)).message).toMatch(/it has more than 9 bytes$/)
  expect(existsSync(target)).toBe(false)
})

test('redirects in a circle end', async () => {
  const origin = await serve((_request, response) => response.writeHead(302, { location: '/x' }).end())
  const target = join(tempFolder(), 'x.gguf')
  const { message } = await failure(downloadResumed(`${origin}/x.gguf`, target, { signal }))
  expect(message).toMatch(/there are more than 5 redirects$/)
})

test('a server that sends nothing more ends the download', async () => {
  const origin = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('x')
  })
  const target = join(tempFolder(), 'x.gguf')
  const { message } = await failure(downloadResumed(`${origin}/x.gguf`, target, { signal, idleMs: 100 }))
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
