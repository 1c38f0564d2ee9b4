import { createHash, createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { downloadArchive, type DownloadLimits } from '../../model-archiver/download.ts'
import { isPublicAddress } from '../../model-archiver/http-get.ts'
import { signS3Get } from '../../model-archiver/s3-signature.ts'
import { ServeError } from '../../common/errors.ts'
import { CERT, KEY } from '../support/tls/files.ts'
import { tempFolder } from './temp.ts'
import { serve } from './web-server.ts'

function download(url: string, store: string, limits: DownloadLimits = {}): Promise<string> {
  return downloadArchive(url, store, { isAllowed: () => true, allowPrivate: true, ...limits })
}

/** Code and detail of the failure. */
async function problem(promise: Promise<unknown>): Promise<{ code: string; detail?: string }> {
  try {
    await promise
  } catch (error) {
    if (error instanceof ServeError) return { code: error.code, detail: error.detail }
    throw error
  }
  throw new Error('It did not fail')
}

describe('a download', () => {
  test('of two for one file fails at once and does not disturb the first', async () => {
    let finish: () => void = () => undefined
    let asked: () => void = () => undefined
    const first = new Promise<void>((resolve) => (asked = resolve))
    const origin = await serve((_request, response) => {
      response.write('arch')
      finish = () => response.end('ive')
      asked()
    })
    const store = tempFolder()
    const running = download(`${origin}/x.mar`, store)
    await first
    await expect(download(`${origin}/x.mar`, store)).rejects.toThrow('Model file already exists x.mar')
    finish()
    expect(readFileSync(await running, 'utf8')).toBe('archive')
    expect(readdirSync(store)).toEqual(['x.mar'])
  })

  test('that announces more than the limit is not read', async () => {
    const origin = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': 1_000_000 }).write('x')
    })
    const store = tempFolder()
    expect(await problem(download(`${origin}/x.mar`, store, { maxBytes: 10 }))).toEqual({
      code: 'DOWNLOAD_FAILED',
      detail: 'it is larger than 10 bytes',
    })
    expect(readdirSync(store)).toEqual([])
  })

  test.each([
    ['before its head', (): void => undefined],
    ['in its body', (response: Parameters<RequestListener>[1]): unknown => response.write('x')],
  ])('that stands still %s ends', async (_where, answer) => {
    const origin = await serve((_request, response) => void answer(response))
    const store = tempFolder()
    expect(await problem(download(`${origin}/x.mar`, store, { idleMs: 100 }))).toEqual({
      code: 'DOWNLOAD_FAILED',
      detail: expect.stringMatching(/no (data|answer) arrived .* 0\.1 s$|aborted/),
    })
    expect(readdirSync(store)).toEqual([])
  })

  test('that drips ends when its time is over', async () => {
    const origin = await serve((_request, response) => {
      const timer = setInterval(() => response.write('x'), 10)
      response.on('close', () => clearInterval(timer))
    })
    const store = tempFolder()
    expect(await problem(download(`${origin}/x.mar`, store, { timeoutMs: 200 }))).toEqual({
      code: 'DOWNLOAD_FAILED',
      detail: 'it took longer than 0.2 s',
    })
    expect(readdirSync(store)).toEqual([])
  })

  test('is called off when the server stops', async () => {
    const stop = new AbortController()
    const origin = await serve((_request, response) => {
      response.write('x')
      stop.abort()
    })
    const store = tempFolder()
    const { code } = await problem(download(`${origin}/x.mar`, store, { signal: stop.signal }))
    expect(code).toBe('SHUTTING_DOWN')
    expect((await problem(download(`${origin}/y.mar`, store, { signal: stop.signal }))).code).toBe(
      'SHUTTING_DOWN',
    )
    expect(readdirSync(store)).toEqual([])
  })

  test.each([(port: string) => `http://127.0.0.1:${port}`, (port: string) => `http://localhost:${port}`])(
    'does not ask this machine unless it may',
    async (address) => {
      let asked = 0
      const origin = await serve((_request, response) => {
        asked += 1
        response.end()
      })
      const url = `${address(new URL(origin).port)}/x.mar`
      const refused = download(url, tempFolder(), { allowPrivate: false })
      await expect(refused).rejects.toThrow('its address is loopback or private; the operator allows such')
      expect(await problem(refused)).toEqual({
        code: 'DOWNLOAD_FAILED',
        detail: expect.stringMatching(/^it is (127\.0\.0\.1|::1)$/),
      })
      expect(asked).toBe(0)
    },
  )
})

describe('why a download failed, in one line', () => {
  const causeAt = async (url: string): Promise<string | undefined> =>
    (await problem(download(`${url}/x.mar`, tempFolder()))).detail

  test('no host of this name', async () => {
    expect(await causeAt('http://no-such-host.invalid')).toMatch(
      /^the name of the host (is not known|could not be looked up, .*) \(getaddrinfo E\w+ no-such-host\.invalid\)$/,
    )
  })

  test('nothing listens', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as AddressInfo
    closed.close()
    await once(closed, 'close')
    const words = 'the host refused the connection: nothing listens on this port'
    expect(await causeAt(`http://127.0.0.1:${port}`)).toBe(
      `${words} (connect ECONNREFUSED 127.0.0.1:${port})`,
    )
    // Two addresses, whose failures Node joins without a message.
    expect(await causeAt(`http://localhost:${port}`)).toContain(`${words} (connect ECONNREFUSED`)
  })

  test('another status', async () => {
    const origin = await serve((_request, response) => response.writeHead(404).end())
    expect(await causeAt(origin)).toBe('the answer was 404')
  })

  test('a certificate of nobody known', async () => {
    const server = createTlsServer({ key: KEY, cert: CERT }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    expect(await causeAt(`https://127.0.0.1:${port}`)).toMatch(
      /^the certificate of the host is not signed by a known authority; NODE_EXTRA_CA_CERTS names .* \(.*self.signed.*\)$/,
    )
    server.close()
  })

  test('https where there is none', async () => {
    const origin = await serve((_request, response) => response.end())
    expect(await causeAt(origin.replace('http:', 'https:'))).toMatch(
      /^the host does not speak TLS there: the URL may need http, not https \(.*\)$/,
    )
  })
})

describe('public addresses', () => {
  test.each([
    ...['127.0.0.1', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1', '169.254.169.254', '0.0.0.0'],
    ...['100.64.0.1', '224.0.0.1', '255.255.255.255', '::1', '::', 'fe80::1%eth0', 'fd00::1', 'ff02::1'],
    ...['::ffff:127.0.0.1', '::ffff:8.8.8.8', '64:ff9b::7f00:1', '2002:7f00:1::'],
  ])('%s is none', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test.each([
    '8.8.8.8',
    '172.32.0.1',
    '172.15.0.1',
    '100.128.0.1',
    '11.0.0.1',
    '2606:4700::1111',
    '2a00:1450::1',
  ])('%s is one', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })
})

const KEYS = {
  AWS_ACCESS_KEY_ID: 'AKID',
  AWS_SECRET_ACCESS_KEY: 'secret key',
  AWS_DEFAULT_REGION: 'eu-west-1',
}

/** Verifies a signed GET as S3 does: computes the signature from the request, in the documented steps. */
function verified(request: IncomingMessage, secret: string): boolean {
  const { authorization = '', host } = request.headers
  const parts =
    /Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)/
  const [, , date, region, names, signature] = parts.exec(authorization) ?? []
  if (names === undefined || !names.split(';').includes('host')) return false
  const [path, query = ''] = request.url!.split('?')
  const headers = names.split(';').map((name) => `${name}:${String(request.headers[name]).trim()}\n`)
  const canonical = [
    'GET',
    path,
    query.split('&').sort().join('&'),
    headers.join(''),
    names,
    request.headers['x-amz-content-sha256'],
  ]
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
  const sign = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest()
  const scope = `${date}/${region}/s3/aws4_request`
  const text = `AWS4-HMAC-SHA256\n${String(request.headers['x-amz-date'])}\n${scope}\n${hash(canonical.join('\n'))}`
  const key = sign(sign(sign(sign(`AWS4${secret}`, date!), region!), 's3'), 'aws4_request')
  return host !== undefined && sign(key, text).toString('hex') === signature
}

describe('s3_sse_kms', () => {
  const before = { ...process.env }
  afterEach(() => {
    process.env = { ...before }
  })

  test('signs the request with the keys of the environment', async () => {
    let good = false
    const origin = await serve((request, response) => {
      good = verified(request, KEYS.AWS_SECRET_ACCESS_KEY)
      response.end('archive')
    })
    Object.assign(process.env, KEYS)
    const url = `${origin}/bucket/a%20b/x(1)/y.mar?versionId=3&a=%2F`
    const store = tempFolder()
    await downloadArchive(url.replace('(1)', '%281%29'), store, {
      isAllowed: () => true,
      allowPrivate: true,
      s3SseKms: true,
      s3SigningHosts: [origin],
    })
    expect(good).toBe(true)
    expect(readdirSync(store)).toEqual(['y.mar'])
  })

  test('needs these keys', async () => {
    const OWN = { s3SseKms: true, s3SigningHosts: ['http://127.0.0.1:1'] }
    for (const name of Object.keys(KEYS)) Reflect.deleteProperty(process.env, name)
    expect(await problem(download('http://127.0.0.1:1/x.mar', tempFolder(), OWN))).toEqual({
      code: 'DOWNLOAD_FAILED',
      detail: 'Miss environment variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_DEFAULT_REGION',
    })
  })

  test('gives no signature to where it is redirected', async () => {
    let authorization: string | undefined = 'not asked'
    const other = await serve((request, response) => {
      authorization = request.headers.authorization
      response.end('archive')
    })
    const origin = await serve((_request, response) =>
      response.writeHead(307, { location: `${other}/y` }).end(),
    )
    Object.assign(process.env, KEYS)
    await download(`${origin}/x.mar`, tempFolder(), { s3SseKms: true, s3SigningHosts: [origin, other] })
    expect(authorization).toBeUndefined()
  })

  test.each([
    ['?lifecycle', 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'],
    ['?max-keys=2&prefix=J', '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'],
  ])('signs %s as the example in the documentation of S3', (query, signature) => {
    const url = new URL(`https://examplebucket.s3.amazonaws.com/${query}`)
    const credentials = {
      accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
      secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
      region: 'us-east-1',
    }
    const { authorization } = signS3Get(url, credentials, new Date('2013-05-24T00:00:00Z'))
    expect(authorization).toContain(`Signature=${signature}`)
  })

  test('takes a session token along', () => {
    const credentials = { accessKeyId: 'A', secretAccessKey: 'B', region: 'us-east-1', sessionToken: 'T' }
    const headers = signS3Get(new URL('https://b.s3.amazonaws.com/k'), credentials, new Date())
    expect(headers['x-amz-security-token']).toBe('T')
    expect(headers['authorization']).toContain(';x-amz-security-token,')
  })

  test('property: what is signed is what arrives, whatever the path', async () => {
    let good = false
    const origin = await serve((request, response) => {
      good = verified(request, 'B')
      response.end()
    })
    const credentials = { accessKeyId: 'A', secretAccessKey: 'B', region: 'us-east-1' }
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme', minLength: 1 }), { minLength: 1 }),
        async (parts) => {
          const path = parts.map((part) => encodeS3(part)).join('/')
          const url = new URL(`${origin}/b/${path}`)
          fc.pre(url.pathname === `/b/${path}`)
          const response = await fetch(url, { headers: signS3Get(url, credentials, new Date()) })
          await response.arrayBuffer()
          expect(good).toBe(true)
        },
      ),
      { numRuns: 50 },
    )
  })
})

function encodeS3(text: string): string {
  const wellFormed = Buffer.from(text).toString()
  return encodeURIComponent(wellFormed).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

test('the store is not touched by a download that fails to start', async () => {
  const store = tempFolder({ 'keep.mar': '' })
  await problem(download('http://127.0.0.1:1/x.mar', store))
  expect(readdirSync(store)).toEqual(['keep.mar'])
  expect(readFileSync(join(store, 'keep.mar'), 'utf8')).toBe('')
})
