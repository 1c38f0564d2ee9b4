import { randomFillSync } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { rawTgz } from '../model-archiver/archives-by-hand.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { longestTurn, TURN_PROBE } from '../support/turns.ts'
import {
  longPaxHeader,
  manyPaxHeaders,
  overlappingZip,
  sharedEntryZip,
  sparseTar,
  tarOfFiles,
  tarOfFolders,
  tarOfZeros,
  tarThatDeclares,
  zerosAfterTheEnd,
  zerosBeforeTheEntries,
  zipOfFiles,
} from './attack-archives.ts'

const MIB = 1024 * 1024
const GIB = 1024 * MIB

/** The limit of the server: a slow disk takes a millisecond for a file. */
const MAX_FILES = 1_600
const TOO_MANY = new RegExp(`more than ${MAX_FILES} files.*raise max_archive_files`)

const TOO_LARGE = /unpacks to more than 100 times its size\. If you trust it, unpack it yourself/

const ATTACKS: [string, () => Buffer, RegExp][] = [
  [
    '64 MiB of zeros after the end of a tar',
    () => zerosAfterTheEnd(),
    /has more than 1048576 bytes after its end/,
  ],
  ['64 MiB of zeros before the entries of a tar', () => zerosBeforeTheEntries(), /has no entries/],
  ['an extended header of 4 MB', () => longPaxHeader(), /its header is too long/],
  ['extended headers of 4 MB together', () => manyPaxHeaders(), /its header is too long/],
  [
    'many extended headers before one entry',
    () => manyPaxHeaders(4 * MIB, 60_000),
    /it has too many headers/,
  ],
  ['a file of 60 MiB in a tar of 60 KB', () => tarOfZeros(60 * MIB), TOO_LARGE],
  ['a declared size of 7 GiB', () => tarThatDeclares(7 * GIB), TOO_LARGE],
  ['a sparse file', () => sparseTar(7 * GIB), /its kind is not supported/],
  ['too many files in a tar', () => tarOfFiles(MAX_FILES + 1), TOO_MANY],
  ['too many folders in names of a tar', () => tarOfFolders(MAX_FILES / 32, 40), /raise max_archive_files/],
  ['entries of a zip that quote each other', () => overlappingZip(10, MIB), /it overlaps the entry "f/],
  ['a zip of 20 KB whose entries share one', () => sharedEntryZip(100, 20 * MIB), TOO_LARGE],
  ['entries that share one, below every limit', () => sharedEntryZip(2, 1000), /it overlaps the entry "f/],
  ['too many files in a zip', () => zipOfFiles(MAX_FILES + 1), TOO_MANY],
]

/** Milliseconds; without limits these archives took seconds to minutes. */
const MAX_TURN_MS = 100

describe('a server', () => {
  let server: Server
  const store = tempDir()

  test.each(ATTACKS)('refuses %s, takes no long turn and keeps nothing', async (_what, make, message) => {
    server ??= await startServer({
      modelStore: store,
      config: { max_archive_files: MAX_FILES },
      nodeArgs: TURN_PROBE,
    })
    models(server)
    writeFileSync(join(store, 'bomb.mar'), make())
    const before = server.leftovers().sort()
    await longestTurn(server)
    const { status, json } = await server.manage('POST', '/models?url=bomb.mar')
    expect(status).toBe(400)
    expect(json.message).toMatch(message)
    expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
    expect(server.leftovers().sort()).toEqual(before)
  })

  test('refuses a bomb of a workflow', async () => {
    writeFileSync(join(store, 'bomb.war'), sharedEntryZip(100, MIB))
    const before = server.leftovers().sort()
    const { status, json } = await server.manage('POST', '/workflows?url=bomb.war')
    expect(status).toBe(400)
    expect(json.message).toMatch(TOO_LARGE)
    expect(server.leftovers().sort()).toEqual(before)
  })

  test.each([
    ['max_unpacked_size', 1000],
    ['min_free_disk', 999_999_999_999_999],
    ['max_archive_files', 1],
  ])('has the limit of %s', async (key, value) => {
    const limited = await startServer({ config: { [key]: value } })
    const files = ['a', 'b'].map((name) => ({ name: `m/${name}`, content: Buffer.alloc(9 * MIB) }))
    writeFileSync(join(limited.folder, 'store', 'm.tar.gz'), rawTgz(files))
    const { status, json } = await limited.manage('POST', '/models?url=m.tar.gz')
    expect(status).toBe(400)
    expect(json.message).toMatch(new RegExp(`If you trust it, (raise|lower) ${key} in the configuration`))
    expect(models(limited)).toEqual([])
    await limited.stop()
  })
})

describe('what is being unpacked', () => {
  test.each([
    ['is told to stop', ['SIGTERM'] as const],
    ['is told so twice', ['SIGTERM', 'SIGTERM'] as const],
  ])('goes with a server that %s', async (_how, signals) => {
    const server = await startServer()
    const content = Buffer.alloc(400 * MIB)
    // As little as the limit of the ratio permits.
    for (let at = 0; at < content.length; at += MIB) randomFillSync(content, at, MIB / 64)
    const archive = rawTgz([{ name: 'm/zeros.bin', content }])
    writeFileSync(join(server.folder, 'store', 'm.tar.gz'), archive)
    const answer = server.manage('POST', '/models?url=m.tar.gz').catch(() => undefined)
    await server.until(
      () => Promise.resolve(isWritten(server, 'zeros.bin')),
      (written) => written,
    )
    for (const signal of signals) server.process.kill(signal)
    await server.stop()
    await answer
    expect(server.leftovers().filter((name) => name !== 'models')).toEqual([])
  })
})

function models(server: Server): string[] {
  const folder = join(server.folder, 'tmp', 'models')
  mkdirSync(folder, { recursive: true })
  return readdirSync(folder)
}

/** Whether a file with this name from any archive is on the disk. */
function isWritten(server: Server, name: string): boolean {
  return models(server).some((workspace) => {
    const place = join(server.folder, 'tmp', 'models', workspace, 'p')
    return existsSync(place) && readdirSync(place).some((folder) => existsSync(join(place, folder, name)))
  })
}
