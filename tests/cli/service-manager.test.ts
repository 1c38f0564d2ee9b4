import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { startServer, type Server } from '../support/server.ts'
import { modelFolder } from '../support/model-folder.ts'
import { tempDir } from '../support/temp.ts'
import { spawn, spawnSync } from '../support/tools.ts'

/** A program `systemd-notify` that writes down what it is told, and the variables of systemd. */
class Notify {
  readonly folder = tempDir()
  readonly #file = join(this.folder, 'told')

  constructor() {
    const path = join(this.folder, 'systemd-notify')
    const line = '"$* $NOTIFY_SOCKET $WATCHDOG_USEC"'
    writeFileSync(path, `#!/bin/sh\necho ${line} >> ${this.#file}\n`)
    chmodSync(path, 0o755)
    writeFileSync(this.#file, '')
  }

  start(env: Record<string, string>): Promise<Server> {
    const models = [modelFolder('words', 'gated', { minWorkers: 1, maxWorkers: 1 })]
    return startServer({ models, env: { PATH: `${this.folder}:${process.env['PATH']}`, ...env } })
  }

  get told(): string[] {
    return readFileSync(this.#file, 'utf8').split('\n').slice(0, -1)
  }

  /** All messages, once this is one of them. */
  until(server: Server, message: string): Promise<string[]> {
    return server.until(
      () => Promise.resolve(this.told),
      (told) => told.includes(message),
    )
  }
}

const SOCKET = '/run/systemd/notify'

describe('a server that systemd started', () => {
  test('says that it is ready, and later that it stops', async () => {
    const notify = new Notify()
    const server = await notify.start({ NOTIFY_SOCKET: SOCKET })
    expect(await notify.until(server, `READY=1 ${SOCKET} `)).toEqual([`READY=1 ${SOCKET} `])
    expect(await server.stop()).toBe(0)
    expect(await notify.until(server, `STOPPING=1 ${SOCKET} `)).toHaveLength(2)
  })

  test('says at intervals that it lives, if there is a watchdog', async () => {
    const notify = new Notify()
    const server = await notify.start({ NOTIFY_SOCKET: SOCKET, WATCHDOG_USEC: '100000' })
    const told = await server.until(
      () => Promise.resolve(notify.told),
      ({ length }) => length >= 4,
    )
    const alive = `WATCHDOG=1 ${SOCKET} 100000`
    expect(told.slice(0, 4)).toEqual([`READY=1 ${SOCKET} 100000`, alive, alive, alive])
    await server.stop()
  })

  test('leaves a watchdog alone that is of another process', async () => {
    const notify = new Notify()
    const server = await notify.start({ NOTIFY_SOCKET: SOCKET, WATCHDOG_USEC: '1000', WATCHDOG_PID: '1' })
    await notify.until(server, `READY=1 ${SOCKET} 1000`)
    await server.stop()
    await notify.until(server, `STOPPING=1 ${SOCKET} 1000`)
    expect(notify.told).toHaveLength(2)
  })

  test('warns when systemd cannot be told, and serves', async () => {
    const notify = new Notify()
    const path = join(notify.folder, 'systemd-notify')
    writeFileSync(path, '#!/bin/sh\necho "No such socket" >&2\nexit 1\n')
    const server = await notify.start({ NOTIFY_SOCKET: SOCKET })
    const [line] = await server.lines('systemd was not told')
    expect(line).toContain('systemd was not told READY=1: No such socket')
    await server.ready('words')
  })
})

test('a server that systemd did not start runs no systemd-notify', async () => {
  const notify = new Notify()
  const server = await notify.start({ WATCHDOG_USEC: '1000' })
  await server.stop()
  expect(notify.told).toEqual([])
})

/** Prints the messages that come to a socket of systemd's kind. */
const RECEIVER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('bound', flush=True)
while True:
    print(s.recv(4096).decode(), flush=True)
`
const has = (program: string): boolean => spawnSync(program, ['--version']).status === 0

const real = has('systemd-notify') && has('python3') ? test : test.skip
real('the messages of the real systemd-notify arrive', async () => {
  const socket = join(tempDir(), 'notify')
  const receiver = spawn('python3', ['-c', RECEIVER, socket])
  let received = ''
  receiver.stdout.on('data', (data: Buffer) => (received += data.toString()))
  const notify = new Notify()
  writeFileSync(join(notify.folder, 'systemd-notify'), '#!/bin/sh\nexec /usr/bin/systemd-notify "$@"\n')
  const server = await notify.start({ NOTIFY_SOCKET: socket })
  const lines = () => Promise.resolve(received.split('\n'))
  try {
    await server.until(lines, (all) => all.includes('READY=1'))
    await server.stop()
    await server.until(lines, (all) => all.includes('STOPPING=1'))
  } finally {
    receiver.kill()
  }
})
