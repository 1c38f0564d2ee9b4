import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { type Call, type Code, CODES, type Fault } from '../support/faults.ts'
import { FailingServer } from '../support/failing-calls.ts'

/** A call that the server makes at one place. */
interface Place extends Omit<Fault, 'code'> {
  readonly what: string
  /** Default: all of the call. */
  readonly codes?: readonly Code[]
  /** Fails too: what the server does first. */
  readonly also?: Fault
  /** Makes the server do it, while the call fails. */
  readonly act: (at: FailingServer) => unknown
  /** It works again. */
  readonly works: (at: FailingServer) => unknown
  /** What the line about the failure has besides the code. Default: the text. `nothing`: no line is due. */
  readonly says?: string
}

const grows = { act: (at: FailingServer) => at.grow(), works: (at: FailingServer) => at.grown() }
const dies = { act: (at: FailingServer) => at.killOther(), works: (at: FailingServer) => at.otherIsBack() }
const registers = (url: string, model: string) => ({
  act: (at: FailingServer) => at.refuses(url, model),
  works: (at: FailingServer) => at.registers(url, model),
})
const ofArchive = registers('file.mar', 'named')
const ofFolder = registers('typed', 'typed')
const downloads = {
  act: (at: FailingServer) => at.refuses(at.awayUrl, 'away'),
  works: (at: FailingServer) => at.registers(at.awayUrl, 'away'),
}
const changes = { act: (at: FailingServer) => at.change(), works: (at: FailingServer) => at.keepsSnapshots() }
const logs = { act: (at: FailingServer) => at.ask('/ping'), works: (at: FailingServer) => at.logsAccess() }
const rolls = { act: (at: FailingServer) => at.rollModelLog(), works: (at: FailingServer) => at.rolled() }
const NO_RM: Fault = { call: 'spawn', code: 'EAGAIN', text: '-rf' }

const LIFE_OF_A_WORKER: Place[] = [
  { what: 'its folder', call: 'mkdir', text: '/ts-', ...grows },
  { what: 'its program', call: 'spawn', text: 'main.js', says: 'spawn', ...grows },
  { what: 'its socket', call: 'listen', text: '/ts-', by: 'worker', ...grows },
  { what: 'the connection to it', call: 'connect', text: '/ts-', ...grows },
  ...(['open', 'write'] as const).map((call): Place => ({
    what: 'the owner of a folder that was cleaned',
    call,
    text: '/owner',
    act: (at) => {
      at.cleanTemp()
      return at.grow()
    },
    works: (at) => at.grown(),
  })),
  {
    what: 'the end of its children',
    call: 'spawn',
    text: 'torchserve-ts-reaper',
    says: 'may outlive it',
    ...dies,
  },
  { what: 'the removal of its folder', call: 'unlink', text: '/ts-', also: NO_RM, ...dies },
  {
    what: 'the guard against orphans',
    call: 'spawn',
    text: 'torchserve-ts-guard',
    says: 'may outlive it',
    act: (at) => process.kill(at.guard!, 'SIGKILL'),
    works: (at) =>
      at.server.until(
        async () => at.guard,
        (pid) => pid !== undefined,
      ),
  },
]

const MODELS: Place[] = [
  { what: 'the folder of a model', call: 'mkdir', text: '/tmp/models/', ...ofArchive },
  ...(['open', 'write'] as const).map((call): Place => ({
    what: 'its owner',
    call,
    text: '/owner',
    ...ofArchive,
  })),
  { what: 'its package.json', call: 'write', text: 'package.json', ...ofArchive },
  { what: 'its links', call: 'mkdir', text: 'node_modules', ...ofArchive },
  {
    what: 'its archive',
    call: 'open',
    text: 'file.mar',
    codes: ['EMFILE', 'ENOENT'],
    by: 'thread',
    ...ofArchive,
  },
  { what: 'a folder of the archive', call: 'mkdir', text: 'nested', by: 'thread', ...ofArchive },
  { what: 'a file of the archive', call: 'open', text: 'weights.bin', by: 'thread', ...ofArchive },
  { what: 'the content of a file', call: 'write', text: 'weights.bin', by: 'thread', ...ofArchive },
  { what: 'the name of what is unpacked', call: 'rename', text: '.part', ...ofArchive },
  { what: 'its manifest', call: 'open', text: 'MANIFEST.json', codes: ['EMFILE'], ...ofArchive },
  { what: 'its settings', call: 'open', text: 'model-config.yaml', codes: ['EMFILE'], ...ofFolder },
  { what: 'its handler', call: 'open', text: 'handler.ts', codes: ['EMFILE'], ...ofFolder },
  { what: 'the bundler', call: 'spawn', text: '--service', says: 'spawn', ...ofFolder },
  {
    what: 'a thread that unpacks',
    call: 'spawn',
    text: 'unpack-worker',
    codes: ['EAGAIN'],
    // One that is idle takes the first.
    act: async (at) => {
      const both = await Promise.all(['file.mar', 'file.mar'].map((url) => at.register(url)))
      expect(both.map(({ status }) => status)).toContain(500)
    },
    works: async (at) => {
      await at.heal()
      await at.registers('file.mar', 'named')
    },
  },
  {
    what: 'the removal of its files',
    call: 'unlink',
    text: '/tmp/models/',
    also: NO_RM,
    act: async (at) => {
      expect((await at.register('file.mar')).status).toBe(200)
      await at.server.manage('DELETE', '/models/named')
    },
    works: (at) => at.registers('file.mar', 'named'),
  },
  {
    what: 'archives of the index',
    call: 'open',
    text: 'file.mar',
    codes: ['EMFILE'],
    act: async (at) => expect(await at.index()).toEqual(['500']),
    works: async (at) =>
      expect(await at.index()).toEqual(expect.arrayContaining(['count', 'named', 'typed'])),
  },
]

const workflow = {
  act: async (at: FailingServer) => expect(await at.registerWorkflow()).toBe(500),
  works: (at: FailingServer) => at.registersWorkflow(),
}

const WORKFLOWS: Place[] = [
  {
    what: 'its archive',
    call: 'open',
    text: 'flow.war',
    codes: ['EMFILE', 'ENOENT'],
    by: 'thread',
    ...workflow,
  },
  { what: 'its specification', call: 'open', text: 'flow.yaml', codes: ['EMFILE'], ...workflow },
  { what: 'its functions', call: 'write', text: '.functions-', ...workflow },
]

const DOWNLOADS: Place[] = [
  { what: 'a download', call: 'open', text: '.download-', ...downloads },
  { what: 'its content', call: 'write', text: '.download-', ...downloads },
  { what: 'its name', call: 'rename', text: 'away.mar$', ...downloads },
  {
    what: 'its store, to write the name to the disk',
    call: 'open',
    text: 'STORE$',
    codes: ['EMFILE'],
    ...downloads,
  },
  {
    what: 'its removal',
    call: 'unlink',
    text: 'away.mar$',
    codes: ['EROFS'],
    act: async (at) => {
      expect((await at.register(at.awayUrl)).status).toBe(200)
      await at.server.manage('DELETE', '/models/away')
    },
    works: (at) => {
      rmSync(join(at.store, 'away.mar'))
      return at.registers(at.awayUrl, 'away')
    },
  },
]

const SNAPSHOTS: Place[] = [
  {
    what: 'their folder',
    call: 'mkdir',
    text: 'logs/config',
    act: (at) => {
      rmSync(at.logPath('config'), { recursive: true })
      return at.change()
    },
    works: (at) => at.keepsSnapshots(),
  },
  { what: 'a snapshot', call: 'open', text: '-snapshot.cfg', ...changes },
  { what: 'its content', call: 'write', text: '-snapshot.cfg', ...changes },
  { what: 'its name', call: 'rename', text: '-snapshot.cfg', ...changes },
  {
    what: 'the folder, to write the name to the disk',
    call: 'open',
    text: 'config$',
    codes: ['EMFILE'],
    ...changes,
  },
  {
    ...{ what: 'the removal of old ones', call: 'unlink', text: '.cfg$', codes: ['EROFS'], ...changes },
    act: (at) => {
      at.fillSnapshots()
      return at.change()
    },
  },
]

const LOGS: Place[] = [
  { what: 'lines of a log', call: 'write', text: 'access_log.log', ...logs },
  {
    what: 'a log that logrotate has moved',
    call: 'open',
    text: 'access_log.log',
    act: async (at) => {
      renameSync(at.logPath('access_log.log'), at.logPath('access_log.moved'))
      await at.reopenLogs()
    },
    works: (at) => at.logsAccess(),
  },
  { what: 'a log of yesterday', call: 'rename', text: 'model_log.log', ...rolls },
  { what: 'the log after it', call: 'open', text: 'model_log.log', ...rolls },
  { what: 'its compressed file', call: 'open', text: '.gz.tmp', ...rolls },
  { what: 'the content of that', call: 'write', text: '.gz.tmp', codes: ['ENOSPC', 'EROFS'], ...rolls },
  { what: 'the name of that', call: 'rename', text: '.gz', ...rolls },
  { what: 'the removal of the log', call: 'unlink', text: 'logs/model_log.', codes: ['EROFS'], ...rolls },
]

const OTHERS: Place[] = [
  ...(
    [
      ['open', 'key_file.json'],
      ['write', 'key_file.json'],
      ['rename', 'key_file.json'],
      ['open', 'FOLDER$'],
    ] as const
  ).map(([call, text]): Place => ({
    what: 'the key file',
    call,
    text,
    act: async (at) => {
      const before = at.key('management')
      expect(await at.rotate()).toBe(500)
      expect(at.key('management')).toBe(before)
      expect(await at.managesWith(before)).toBe(200)
    },
    works: async (at) => {
      expect(await at.rotate()).toBe(200)
      at.server.headers = { authorization: `Bearer ${at.key('management')}` }
      expect(await at.managesWith(at.key('management'))).toBe(200)
    },
  })),
  {
    what: 'API keys that have changed',
    call: 'open',
    text: 'keys.json',
    codes: ['EMFILE', 'ENOENT'],
    act: (at) => at.addApiKey(),
    works: (at) => at.hasApiKey(at.lastApiKey),
  },
  {
    what: 'the memory of processes',
    call: 'open',
    text: '/proc/',
    codes: ['EMFILE', 'ENOENT'],
    says: 'nothing',
    act: async (at) => {
      expect((await at.server.manage('GET', '/models/count')).status).toBe(200)
      expect(await at.server.metric('ts_inference_requests_total')).toBeGreaterThan(0)
    },
    works: async (at) => expect((await at.server.worker('count')).memoryUsage).toBeGreaterThan(0),
  },
  {
    what: 'files of the console page',
    call: 'open',
    text: 'dist/frontend/console',
    codes: ['EMFILE'],
    act: async (at) => expect((await at.page()).status).toBe(500),
    works: async (at) => expect((await at.page()).status).toBe(200),
  },
]

let at: FailingServer
let descriptors: number

beforeAll(async () => {
  at = await FailingServer.start()
  await at.otherIsBack()
  await at.registers('file.mar', 'named')
  descriptors = at.descriptors
})

afterEach(() => at.heal())

afterAll(() => at.kill())

/** A place with one of its codes. */
type Case = [what: string, call: Call, code: Code, place: Place]

const casesOf = (places: readonly Place[]): Case[] =>
  places.flatMap((place) =>
    (place.codes ?? CODES[place.call]).map((code): Case => [place.what, place.call, code, place]),
  )

async function check(code: Code, place: Place): Promise<void> {
  const { server, faults, load } = at
  const { call, by, also } = place
  const text = place.text.replace('FOLDER', server.folder).replace('STORE', at.store)
  const { says = text.replace('$', '') } = place
  const fault: Fault = { call, code, text, by }
  expect(server.process.exitCode).toBeNull()
  const lines = server.output.length
  const hits = faults.hits(fault)
  faults.make(fault, ...(also === undefined ? [] : [also]))
  await place.act(at)
  await server.until(
    async () => faults.hits(fault),
    (now) => now > hits,
  )
  if (says !== 'nothing')
    await server.until(
      async () => server.output.slice(lines),
      (found) => found.some((line) => line.includes(code) && line.includes(says)),
      3_000,
    )
  await load.goesOn()
  faults.heal()
  await place.works(at)
  await load.goesOn()
}

describe('calls that fail while a load is verified: no request of others is lost, and a line says the cause', () => {
  describe('in the life of a worker', () => {
    test.each(casesOf(LIFE_OF_A_WORKER))('%s: %s, %s', (_what, _call, code, place) => check(code, place))
  })
  describe('models', () => {
    test.each(casesOf(MODELS))('%s: %s, %s', (_what, _call, code, place) => check(code, place))
  })
  describe('workflows', () => {
    test.each(casesOf(WORKFLOWS))('%s: %s, %s', (_what, _call, code, place) => check(code, place))
  })
  describe('downloads', () => {
    test.each(casesOf(DOWNLOADS))('%s: %s, %s', (_what, _call, code, place) => check(code, place))
  })
  describe('snapshots', () => {
    test.each(casesOf(SNAPSHOTS))('%s: %s, %s', (_what, _call, code, place) => check(code, place))
  })
  describe('logs', () => {
    test.each(casesOf(LOGS))('%s: %s, %s', (_what, _call, code, place) => check(code, place))
  })
  describe('other files', () => {
    test.each(casesOf(OTHERS))('%s: %s, %s', (_what, _call, code, place) => check(code, place))
  })

  test('afterwards nothing is kept, no line is lost, and the server drains', async () => {
    await at.server.until(
      async () => at.descriptors,
      (now) => now <= descriptors,
    )
    expect(await at.server.metric('torchserve_ts_log_lines_lost_total')).toBe(0)
    expect((await at.server.worker('count')).restarts).toBe(0)
    const { streams, status } = await at.stop()
    expect(streams).toBeGreaterThan(0)
    expect(status).toBe(0)
    expect(at.server.leftovers().filter((name) => name !== 'models')).toEqual([])
  })
})
