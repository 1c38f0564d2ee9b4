import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { downloadArchive } from '../../model-archiver/download.ts'
import { maySignFor } from '../../model-archiver/s3-signature.ts'
import { settingsOf } from '../config/support.ts'
import { tempDir } from '../support/temp.ts'

const before = { ...process.env }
const asked: IncomingHttpHeaders[] = []
const host = createServer((request, response) => {
  asked.push(request.headers)
  response.end('archive')
})
let origin: string

beforeAll(async () => {
  host.listen(0, '127.0.0.1')
  await once(host, 'listening')
  origin = `http://127.0.0.1:${(host.address() as AddressInfo).port}`
  const keys = {
    AWS_ACCESS_KEY_ID: 'AKIA',
    AWS_SECRET_ACCESS_KEY: 'planted',
    AWS_DEFAULT_REGION: 'eu-west-1',
  }
  Object.assign(process.env, keys)
})

afterAll(() => {
  process.env = before
  host.closeAllConnections()
  host.close()
})

beforeEach(() => void asked.splice(0))

function download(s3SigningHosts: readonly string[]): Promise<unknown> {
  const limits = { isAllowed: () => true, allowPrivate: true, s3SseKms: true, s3SigningHosts }
  return downloadArchive(`${origin}/x.mar`, tempDir(), limits)
}

describe('which addresses may get a signature', () => {
  test.each([
    'https://bucket.s3.amazonaws.com/x.mar',
    'https://s3.amazonaws.com/bucket/x.mar',
    'https://a.b.s3.eu-central-1.amazonaws.com/x.mar',
    'https://s3.us-gov-west-1.amazonaws.com/bucket/x.mar',
    'https://bucket.s3-us-west-2.amazonaws.com/x.mar',
    'https://bucket.s3.dualstack.us-east-1.amazonaws.com/x.mar',
    'https://bucket.s3-fips.dualstack.us-east-1.amazonaws.com/x.mar',
    'https://bucket.s3-accelerate.amazonaws.com/x.mar',
    'https://ap-123456789012.s3-accesspoint.us-west-2.amazonaws.com/x.mar',
    'https://bucket.s3.cn-north-1.amazonaws.com.cn/x.mar',
  ])('%s is S3', (url) => {
    expect(maySignFor(new URL(url), [])).toBe(true)
  })

  test.each([
    'http://bucket.s3.amazonaws.com/x.mar',
    'https://bucket.s3.amazonaws.com:8443/x.mar',
    'https://example.com/x.mar',
    'https://s3.amazonaws.com.example.com/x.mar',
    'https://evil-s3.amazonaws.com/x.mar',
    'https://ec2-1-2-3-4.compute-1.amazonaws.com/x.mar',
    'https://ec2-1-2-3-4.eu-west-1.compute.amazonaws.com/x.mar',
    'https://x.execute-api.us-east-1.amazonaws.com/x.mar',
    'https://s3-1.eu-west-1.elb.amazonaws.com/x.mar',
    'https://bucket.s3-website.us-east-1.amazonaws.com/x.mar',
    'https://s3.amazonaws.com@example.com/x.mar',
    'https://example.com/s3.amazonaws.com/x.mar',
  ])('%s is not', (url) => {
    expect(maySignFor(new URL(url), [])).toBe(false)
  })

  test('a host that the operator lists, with the port and the scheme that are listed', () => {
    const { s3SigningHosts } = settingsOf({
      file: 's3_signing_hosts=Minio.internal, minio.internal:9000, http://127.0.0.1:9000',
    }).settings
    const may = (url: string): boolean => maySignFor(new URL(url), s3SigningHosts)
    expect(s3SigningHosts).toEqual([
      'https://minio.internal',
      'https://minio.internal:9000',
      'http://127.0.0.1:9000',
    ])
    expect(
      ['https://minio.internal/x', 'https://minio.internal:9000/x', 'http://127.0.0.1:9000/x'].map(may),
    ).toEqual([true, true, true])
    expect(
      ['http://minio.internal/x', 'https://minio.internal:1/x', 'https://127.0.0.1:9000/x'].map(may),
    ).toEqual([false, false, false])
  })

  test.each(['a/b', 'https://h/', 'user@host', '*.internal/x', 'a b'])('%s is no host to list', (text) => {
    expect(() => settingsOf({ file: `s3_signing_hosts=${text}` })).toThrow('s3_signing_hosts')
  })
})

test('another host is not even asked, and the error says what to do', async () => {
  await expect(download([])).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('s3_signing_hosts') as unknown,
  })
  expect(asked).toEqual([])
})

test('a listed host gets the signature', async () => {
  const path = (await download([origin])) as string
  expect(readdirSync(path.replace(/x\.mar$/, ''))).toEqual(['x.mar'])
  expect(asked[0]!.authorization).toContain('AWS4-HMAC-SHA256 Credential=AKIA/')
})
