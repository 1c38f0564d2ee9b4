import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { REPOSITORY } from '../support/server-process.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

/** What the chart's init container runs for `models.download`. */
const PROGRAM = join(REPOSITORY, 'deploy', 'helm', 'torchserve-ts', 'files', 'download.mjs')
const ARCHIVE = Buffer.alloc(300_000, 'an archive ')
const HASH = createHash('sha256').update(ARCHIVE).digest('hex')

let servers: Server[]
let folder: string

beforeEach(() => {
  servers = []
  folder = tempDir()
})

afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
})

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Status and output of a download of one archive. */
async function download(url: string, sha256 = HASH, authorization = ''): Promise<[number, string]> {
  const list = join(tempDir(), 'list.json')
  writeFileSync(list, JSON.stringify([{ file: 'a.mar', url, sha256 }]))
  const env = { DOWNLOAD_AUTHORIZATION: authorization }
  const { exitCode, all } = await execa(process.execPath, [PROGRAM, list, folder], {
    all: true,
    reject: false,
    env,
  })
  return [exitCode!, all]
}

test('an archive arrives whole, and one that is there with its hash is not downloaded again', async () => {
  let asked = 0
  const url = await serve((_req, res) => {
    asked += 1
    res.end(ARCHIVE)
  })
  expect(await download(`${url}/a`)).toEqual([0, 'Downloaded a.mar, 300000 bytes; its SHA-256 is right'])
  expect(readFileSync(join(folder, 'a.mar')).equals(ARCHIVE)).toBe(true)
  expect(await download(`${url}/a`)).toEqual([0, 'a.mar is there already'])
  expect([asked, readdirSync(folder)]).toEqual([1, ['a.mar']])
})

test('an older file is replaced by what has the hash', async () => {
  const url = await serve((_req, res) => res.end(ARCHIVE))
  writeFileSync(join(folder, 'a.mar'), 'older')
  expect(await download(`${url}/a`)).toMatchObject([0, expect.stringContaining('Downloaded')])
  expect(statSync(join(folder, 'a.mar')).size).toBe(ARCHIVE.length)
})

test.each<[string, RequestListener, string]>([
  ['is not found', (_req, res) => res.writeHead(404).end('planted'), 'the server answered 404'],
  ['has another hash', (_req, res) => res.end('other'), `its SHA-256 must be ${HASH}, found `],
  [
    'breaks off',
    (_req, res) => {
      res.writeHead(200, { 'content-length': ARCHIVE.length })
      res.write(ARCHIVE.subarray(0, 1_000), () => res.destroy())
    },
    'terminated',
  ],
])('a download that %s fails without its address, and leaves the older file', async (_what, answer, why) => {
  const url = await serve(answer)
  writeFileSync(join(folder, 'a.mar'), 'older')
  const [status, said] = await download(`${url}/a?signature=planted`)
  expect([status, said]).toEqual([1, expect.stringContaining(`a.mar could not be downloaded: ${why}`)])
  expect(said).not.toContain('planted')
  expect([readdirSync(folder), readFileSync(join(folder, 'a.mar'), 'utf8')]).toEqual([['a.mar'], 'older'])
})

test('the authorization goes to the server of the list, and not on to another one', async () => {
  const seen: (string | undefined)[] = []
  const other = await serve((req, res) => {
    seen.push(req.headers.authorization)
    res.end(ARCHIVE)
  })
  const url = await serve((req, res) => {
    seen.push(req.headers.authorization)
    res.writeHead(302, { location: `${other}/a` }).end()
  })
  expect((await download(`${url}/a`, HASH, 'Bearer secret'))[0]).toBe(0)
  expect(seen).toEqual(['Bearer secret', undefined])
})
