import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { createArchive } from '../../model-archiver/pack.ts'
import { COUNT, countBody } from '../support/count.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { CLI, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { spawn, spawnSync } from '../support/tools.ts'

const DISK_MIB = 8
const disks: string[] = []

/** A small disk; undefined where this user may not mount one. */
function mountDisk(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'disk-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'none', folder])
  if (status === 0) disks.push(folder)
  return status === 0 ? folder : undefined
}

afterAll(() => {
  for (const disk of disks) {
    spawnSync('umount', ['-l', disk])
    rmSync(disk, { recursive: true, force: true })
  }
})

const disk = mountDisk()
const needsDisk = disk === undefined ? test.skip : test
const title = disk === undefined ? ' (left out: only root may mount a small disk)' : ''

/** Takes all that is left. */
function fill(path: string): void {
  for (let size = 1024 * 1024; size > 0; size = Math.floor(size / 2)) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' })
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC')
    }
  }
}

/** A store on another disk, with an archive of a megabyte. */
async function makeStore(): Promise<string> {
  const store = tempDir()
  const handler = join(tempDir(), 'handler.mjs')
  writeFileSync(handler, `export const handle = (requests) => requests.map(() => 'hello')\n`)
  const extra = join(tempDir(), 'weights.bin')
  writeFileSync(extra, Buffer.alloc(1024 * 1024, 'weights'))
  const options = { modelName: 'hello', version: '1.0', handler, extraFiles: [extra], exportPath: store }
  await createArchive(options)
  return store
}

const snapshots = (folder: string): string[] => readdirSync(join(folder, 'logs', 'config')).sort()
const register = (server: Server) =>
  server.manage('POST', '/models?url=hello.mar&model_name=hello&initial_workers=1&synchronous=true')

needsDisk(
  `a disk that fills up: streams go on, registering fails and leaves nothing, snapshots stay whole${title}`,
  async () => {
    const folder = join(disk!, 'server')
    mkdirSync(folder)
    const server = await startServer({
      folder,
      models: [COUNT],
      modelStore: await makeStore(),
      snapshots: true,
      config: { min_free_disk: 0 },
    })
    await server.ready('count')
    const before = snapshots(folder)
    const unpacked = readdirSync(join(folder, 'tmp', 'models'))
    const stream = new RawRequest(
      server.ports.inference,
      '/predictions/count',
      countBody({ id: 'full', n: 300, delay: 10 }),
    )
    await stream.gotChunks(3)

    fill(join(disk!, 'ballast'))
    const { status, json } = await register(server)
    // The client is not told about the server's disk; the operator is.
    expect([status, json.message]).toEqual([500, 'Internal server error'])
    await server.until(
      async () => server.output.join('\n'),
      (output) => output.includes('ENOSPC'),
    )
    expect((await server.manage('GET', '/models/hello')).status).toBe(404)
    expect(readdirSync(join(folder, 'tmp', 'models'))).toEqual(unpacked)
    // Logs cannot be written, nor the snapshot after this.
    for (let k = 0; k < 200; k += 1) await rawRequest(server.ports.inference, '/ping', { method: 'GET' })
    const scaled = await server.manage('PUT', '/models/count?min_worker=1&max_worker=1&synchronous=true')
    expect(scaled.status).toBe(200)
    const { chunks, complete } = await stream.done
    expect([chunks.length, complete]).toEqual([300, true])
    const whole = snapshots(folder).filter((name) => name.endsWith('.cfg'))
    for (const name of whole)
      expect(readFileSync(join(folder, 'logs', 'config', name), 'utf8')).toMatch(/model_snapshot=/)
    expect(snapshots(folder)).toEqual(before)

    rmSync(join(disk!, 'ballast'))
    expect((await register(server)).status).toBe(200)
    expect((await rawRequest(server.ports.inference, '/predictions/hello', { body: 'x' })).body).toBe('hello')
    expect(snapshots(folder).length).toBeGreaterThan(before.length)
    const log = join(folder, 'logs', 'access_log.log')
    // What could not be written has waited.
    await server.until(
      async () => readFileSync(log, 'utf8').split('GET /ping ').length,
      (pings) => pings === 201,
    )
    expect(await server.metric('torchserve_ts_log_lines_lost_total')).toBe(0)
    const size = existsSync(log) ? readFileSync(log).length : 0
    await rawRequest(server.ports.inference, '/predictions/hello', { body: 'x' })
    await server.until(
      async () => readFileSync(log).length,
      (now) => now > size,
    )
    expect(await server.stop()).toBe(0)
  },
)

const WAITING = 'Lines for the console wait: ENOSPC'
const logged = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '')

needsDisk(`the file of the console goes on when its full disk has room again${title}`, async () => {
  const folder = tempDir()
  const ballast = join(disk!, 'ballast')
  const path = join(disk!, 'console.log')
  const console = openSync(path, 'a')
  const config = ['inference', 'management', 'metrics'].map((name) => `${name}_address=http://127.0.0.1:0\n`)
  writeFileSync(
    join(folder, 'config.properties'),
    `${config.join('')}grpc_inference_port=0\ngrpc_management_port=0\n`,
  )
  const flags = [
    '--start',
    '--foreground',
    '--disable-token-auth',
    '--ncs',
    '--model-store',
    '.',
    '--ts-config',
    'config.properties',
  ]
  const child = spawn(process.execPath, [CLI, ...flags], {
    cwd: folder,
    stdio: ['ignore', console, console],
    env: { ...process.env, TEMP: folder },
  })
  closeSync(console)
  const exit = once(child, 'exit')
  const log = join(folder, 'logs', 'ts_log.log')
  const has = async (file: string, text: string): Promise<void> => {
    while (!logged(file).includes(text)) {
      if (child.exitCode !== null) throw new Error(`It ended with ${child.exitCode}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  try {
    await has(path, 'Model server started.')
    fill(ballast)
    // The last page of the file has room for some lines.
    while (!logged(log).includes(WAITING)) {
      child.kill('SIGUSR1')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    rmSync(ballast)
    await has(path, WAITING)
  } finally {
    child.kill('SIGTERM')
    await exit
  }
  const signals = (text: string): number => text.split('opened again (SIGUSR1)').length
  expect(signals(logged(path))).toBe(signals(logged(log)))
  expect(logged(path)).toMatch(/Stopped\n$/)
})
