import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { allReady, answerOf, predict } from '../support/python/client.ts'
import { startServer, type Server } from '../support/server.ts'
import { execFileSync } from '../support/tools.ts'
import {
  attacksOn,
  expectMatrix,
  foreignSocket,
  hostile,
  inMode,
  MODES,
  plantedServer,
  whyNot,
} from './hostile/matrix.ts'

const reason = await whyNot()
const isRoot = process.getuid?.() === 0
const LIMITS = { memory: 400 << 20, openFiles: 128 }

const guests = reason === undefined ? describe : describe.skip

guests(`A hostile TypeScript handler${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let server: Server
  let socket: Awaited<ReturnType<typeof foreignSocket>>
  const stopped = (model: string, attack: Record<string, unknown>) => answerOf(server, model, attack)

  beforeAll(async () => {
    const planted = plantedServer()
    socket = await foreignSocket(planted.folder)
    server = await startServer({
      ...planted,
      models: [
        ...MODES.map((mode) => hostile(mode, inMode(mode))),
        hostile('asks', inMode('default', { env: ['PLANTED_SECRET'], headers: ['authorization'] })),
        hostile('limited', inMode('default', LIMITS)),
        hostile('offline', inMode('default', { network: false })),
        hostile('counted', inMode('default', { processes: 40 })),
      ],
    })
    await allReady(server, [...MODES, 'asks', 'limited', 'offline', ...(isRoot ? [] : ['counted'])])
  })

  afterAll(() => socket.close())

  test('is stopped as docs/security.md says', async () => {
    await expectMatrix(attacksOn(server, socket.path), server, (mode) => mode)
  })

  test('inherits no file that the server has open', () => {
    const guest = join(import.meta.dirname, '..', '..', 'libexec', 'guest.pl')
    const file = openSync(join(import.meta.dirname, 'hostile', 'handler.ts'), 'r')
    const isThere = ['perl', '-e', "exit(-e '/proc/self/fd/3' ? 1 : 0)"]
    const stdio = ['ignore', 'ignore', 'inherit', file] as const
    expect(() => execFileSync(isThere[0]!, isThere.slice(1), { stdio: [...stdio] })).toThrow()
    execFileSync('perl', [guest, 'files', 'read', '/', '--', ...isThere], { stdio: [...stdio] })
    closeSync(file)
  })

  test('has its scratch folder, which goes with it', async () => {
    const { got: own } = await answerOf(server, 'default', { attack: 'scratch' })
    const { got: other } = await answerOf(server, 'strict', { attack: 'scratch' })
    expect(own).not.toBe(other)
    expect(await stopped('strict', { attack: 'list', path: own })).toEqual({ stopped: 'EACCES' })
  })

  test('gets what its model asks for and the operator allows', async () => {
    expect(await answerOf(server, 'asks', { attack: 'environment' })).toEqual({ got: 'planted' })
    const headers = { Authorization: 'Bearer mine' }
    expect(await answerOf(server, 'asks', { attack: 'header' }, headers)).toEqual({ got: 'Bearer mine' })
  })

  test('without network has no TCP and no UDP, in default mode too', async () => {
    const port = server.ports.management
    expect(await stopped('offline', { attack: 'tcp', port })).toEqual({ stopped: 'EPERM' })
    expect(await stopped('offline', { attack: 'udp', port })).toEqual({ stopped: 'EPERM' })
  })

  test('cannot open more files than its limit', async () => {
    expect(await stopped('limited', { attack: 'files', count: 400 })).toEqual({ stopped: 'EMFILE' })
    expect(await answerOf(server, 'default', { attack: 'files', count: 400 })).toEqual({ got: '400 open' })
  })

  test('cannot take more memory than its limit', async () => {
    expect(await answerOf(server, 'default', { attack: 'allocate', count: 800 })).toEqual({ got: '800 MB' })
    const { status, body } = await predict(server, 'limited', { attack: 'allocate', count: 800 })
    expect(status !== 200 || body.includes('stopped')).toBe(true)
  })

  test('cannot start more processes than its limit, or is not started where it could', async () => {
    if (isRoot) {
      const [{ lastExit } = {}] = (await server.describe('counted'))[0]!.workers
      expect(lastExit?.reason).toContain(
        'worker_processes is not supported here: this system lacks a user other than root',
      )
    } else {
      expect(await stopped('counted', { attack: 'processes', count: 60 })).toEqual({ stopped: 'EAGAIN' })
      expect(await answerOf(server, 'default', { attack: 'processes', count: 60 })).toEqual({
        got: '60 started',
      })
    }
  })
})
