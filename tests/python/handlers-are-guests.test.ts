import { afterAll, beforeAll, expect, test } from '@jest/globals'
import {
  attacksOn,
  expectMatrix,
  foreignSocket,
  inMode,
  MODES,
  plantedServer,
  whyNot,
} from '../security/hostile/matrix.ts'
import { allReady, answerOf, PYTHON_MS } from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { startServer, type Server } from '../support/server.ts'

const reason = await whyNot()

await describePython('A hostile Python handler', ({ python }) => {
  if (reason !== undefined) {
    test.skip(`is stopped as docs/security.md says (skipped: ${reason})`, () => undefined)
    return
  }

  let server: Server
  let socket: Awaited<ReturnType<typeof foreignSocket>>

  beforeAll(async () => {
    const { config, ...planted } = plantedServer()
    socket = await foreignSocket(planted.folder)
    server = await startServer({
      ...planted,
      config: { ...config, python },
      models: [
        ...MODES.map((mode) => pythonFolder(mode, 'hostile', inMode(mode))),
        pythonFolder('limited', 'hostile', inMode('default', { memory: 1 << 30, openFiles: 128 })),
      ],
    })
    await allReady(server, [...MODES, 'limited'])
  }, PYTHON_MS)

  afterAll(() => socket.close())

  test('is stopped as docs/security.md says', async () => {
    const { pid } = server
    const both = ['default', 'strict'] as const
    const attacks = attacksOn(server, socket.path)
    attacks.push(['the server’s memory, by a call', { attack: 'vm-read', pid }, [...both]])
    await expectMatrix(attacks, server, (mode) => mode)
  })

  test('has its scratch folder', async () => {
    const { got } = await answerOf(server, 'strict', { attack: 'scratch' })
    expect(got).toContain(`${server.folder}/tmp/ts-`)
  })

  test('cannot open more files or take more memory than its limits', async () => {
    const files = { attack: 'files', count: 400 }
    const memory = { attack: 'allocate', count: 1500 }
    expect(await answerOf(server, 'limited', files)).toEqual({ stopped: 'EMFILE' })
    expect(await answerOf(server, 'limited', memory)).toEqual({ stopped: 'MemoryError' })
    expect(await answerOf(server, 'default', files)).toEqual({ got: '400 open' })
    expect(await answerOf(server, 'default', memory)).toEqual({ got: '1500 MB' })
  })
})
