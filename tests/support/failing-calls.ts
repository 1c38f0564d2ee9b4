import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from '@jest/globals'
import { createArchive } from '../../model-archiver/pack.ts'
import { writeApiKeys } from './api-keys.ts'
import { COUNT } from './count.ts'
import { Faults } from './faults.ts'
import { childrenOf, commandOf, isRunning } from './processes.ts'
import { rawRequest, type RawResponse } from './raw-http.ts'
import { type Server, startServer } from './server.ts'
import { tempDir } from './temp.ts'
import { VerifyingLoad } from './verifying-load.ts'
import { WorkflowStore } from './workflows.ts'

const HANDLER = `export const handle = (requests) => requests.map(() => 'hello')\n`
const PRINTS = `export function handle(requests) { console.log('printed'); return requests.map(() => 'hello') }\n`
/** A function of the workflow, then a model. */
const FLOW = 'models: {last: {url: typed}}\ndag: {pass: [last]}\n'
const DAY_MS = 86_400_000
/** As many as the server keeps. */
const KEPT_SNAPSHOTS = 50

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/** A server whose system calls can fail, under a verifying load. */
export class FailingServer {
  readonly server: Server
  readonly faults: Faults
  readonly load: VerifyingLoad
  readonly #files: HttpServer
  readonly store: string
  readonly #keysFile: string
  #rounds = 0
  lastApiKey = ''

  static async start(): Promise<FailingServer> {
    const store = tempDir()
    const extra = tempDir()
    mkdirSync(join(extra, 'nested'))
    writeFileSync(join(extra, 'nested', 'weights.bin'), Buffer.alloc(100_000, 'weights'))
    const handler = join(tempDir(), 'handler.mjs')
    writeFileSync(handler, HANDLER)
    const pack = (modelName: string, exportPath: string) =>
      createArchive({ modelName, version: '2.0', handler, extraFiles: [extra], exportPath })
    await pack('named', store)
    renameSync(join(store, 'named.mar'), join(store, 'file.mar'))
    const away = await pack('away', tempDir())
    for (const [name, source] of Object.entries({ typed: HANDLER, other: PRINTS })) {
      mkdirSync(join(store, name))
      writeFileSync(join(store, name, 'handler.ts'), source.replace('(requests)', '(requests: unknown[])'))
      writeFileSync(join(store, name, 'model-config.yaml'), 'responseTimeout: 60\n')
    }
    const workflows = new WorkflowStore()
    await workflows.pack('flow', FLOW)
    const files = createServer((_request, response) => response.end(readFileSync(away)))
    await once(files.listen(0, '127.0.0.1'), 'listening')
    const faults = new Faults()
    const keysFile = writeApiKeys([{ name: 'load', scopes: ['inference'] }])
    const server = await startServer({
      models: [COUNT, 'other'],
      modelStore: store,
      snapshots: true,
      config: {
        allowed_urls: 'http://127.0.0.1.*',
        api_keys_file: keysFile,
        workflow_store: workflows.folder,
      },
      flags: ['--enable-model-api'],
      ...faults.options,
    })
    return new FailingServer(server, faults, files, store, keysFile)
  }

  private constructor(server: Server, faults: Faults, files: HttpServer, store: string, keysFile: string) {
    this.server = server
    this.faults = faults
    this.#files = files
    this.store = store
    this.#keysFile = keysFile
    server.headers = bearer(this.key('management'))
    this.load = new VerifyingLoad(server, bearer('tsk_load'))
  }

  /** A key of the key file, as it is now. */
  key(kind: 'inference' | 'management' | 'API'): string {
    const text = readFileSync(join(this.server.folder, 'key_file.json'), 'utf8')
    return (JSON.parse(text) as Record<string, { key: string }>)[kind]!.key
  }

  get awayUrl(): string {
    return `http://127.0.0.1:${(this.#files.address() as AddressInfo).port}/away.mar`
  }

  /** Open files and sockets of the server. */
  get descriptors(): number {
    return readdirSync(`/proc/${this.server.pid}/fd`).length
  }

  ask(path: string, options: Parameters<typeof rawRequest>[2] = {}): Promise<RawResponse> {
    const headers = { ...bearer('tsk_load'), ...options.headers }
    return rawRequest(this.server.ports.inference, path, { ...options, headers })
  }

  async predict(model: string): Promise<void> {
    const { status, body } = await this.ask(`/predictions/${model}`, { body: 'x' })
    expect([status, body]).toEqual([200, 'hello'])
  }

  /** Registers a model, without workers: what can fail at these has places of its own. */
  register(url: string): Promise<{ status: number }> {
    const query = new URLSearchParams({ url, initial_workers: '0' })
    return this.server.manage('POST', `/models?${query.toString()}`)
  }

  async unregister(model: string): Promise<void> {
    expect((await this.server.manage('DELETE', `/models/${model}`)).status).toBe(200)
  }

  /** Registering is refused as the server's fault, and leaves no model. */
  async refuses(url: string, model: string): Promise<void> {
    expect((await this.register(url)).status).toBe(500)
    expect((await this.server.manage('GET', `/models/${model}`)).status).toBe(404)
  }

  /** Registering works; what it made is removed again. */
  async registers(url: string, model: string): Promise<void> {
    expect((await this.register(url)).status).toBe(200)
    await this.unregister(model)
  }

  /** Ends the faults, and what a test that failed has left. */
  async heal(): Promise<void> {
    this.faults.heal()
    if (this.server.process.exitCode !== null) return
    if ((await this.server.describe('other'))[0]?.workers.length !== 1)
      await this.server.manage('PUT', '/models/other?min_worker=1&max_worker=1&synchronous=true')
    const { models = [] } = (await this.server.manage('GET', '/models')).json
    for (const { modelName } of models)
      if (modelName !== 'count' && modelName !== 'other') await this.unregister(modelName)
  }

  async registerWorkflow(): Promise<number> {
    return (await this.server.manage('POST', '/workflows?url=flow.war')).status
  }

  async registersWorkflow(): Promise<void> {
    expect(await this.registerWorkflow()).toBe(200)
    expect((await this.server.manage('DELETE', '/workflows/flow')).status).toBe(200)
  }

  /** One more worker. */
  async grow(): Promise<void> {
    expect((await this.server.manage('PUT', '/models/other?min_worker=2&max_worker=2')).status).toBe(202)
  }

  /** The other worker became ready; it goes again. */
  async grown(): Promise<void> {
    await this.server.ready('other')
    expect((await this.server.describe('other'))[0]!.workers).toHaveLength(2)
    const path = '/models/other?min_worker=1&max_worker=1&synchronous=true'
    expect((await this.server.manage('PUT', path)).status).toBe(200)
    await this.predict('other')
  }

  /** Kills the worker of a model. */
  async killOther(): Promise<void> {
    // -1 while it has no process: that would signal every process of this user.
    const { pid } = await this.server.worker('other')
    if (pid > 1) process.kill(pid, 'SIGKILL')
  }

  async otherIsBack(): Promise<void> {
    await this.server.ready('other')
    await this.predict('other')
  }

  /** Removes the folder of sockets, as what cleans /tmp does. */
  cleanTemp(): void {
    const tmp = join(this.server.folder, 'tmp')
    for (const name of readdirSync(tmp)) if (/^ts-/.test(name)) rmSync(join(tmp, name), { recursive: true })
  }

  get guard(): number | undefined {
    return childrenOf(this.server.pid).find(
      (pid) => isRunning(pid) && commandOf(pid).includes('torchserve-ts-guard'),
    )
  }

  /** A change that is written to a snapshot. */
  async change(): Promise<void> {
    expect((await this.server.manage('PUT', '/models/count/1.0/set-default')).status).toBe(200)
  }

  /** Adds so many that the next one takes the place of the oldest. */
  fillSnapshots(): void {
    for (let each = 100; each < 100 + KEPT_SNAPSHOTS; each += 1)
      writeFileSync(join(this.logPath('config'), `20000101000000${each}-snapshot.cfg`), '')
  }

  get snapshots(): string[] {
    const folder = this.logPath('config')
    return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.cfg')) : []
  }

  /** A later change is in a snapshot, and there are no more than wanted. */
  async keepsSnapshots(): Promise<void> {
    const before = this.snapshots
    await this.change()
    await this.server.until(
      async () => this.snapshots,
      (now) => now.length <= KEPT_SNAPSHOTS && now.some((name) => !before.includes(name)),
    )
  }

  logPath(name: string): string {
    return join(this.server.folder, 'logs', name)
  }

  logText(name: string): string {
    try {
      return readFileSync(this.logPath(name), 'utf8')
    } catch {
      return ''
    }
  }

  /** Opens all logs again. */
  async reopenLogs(): Promise<void> {
    const opened = (): number =>
      this.server.output.filter((line) => line.includes('opened again (SIGUSR1)')).length
    const before = opened()
    process.kill(this.server.pid, 'SIGUSR1')
    await this.server.until(
      async () => opened(),
      (now) => now > before,
    )
  }

  /** A request that the access log names. */
  async logsAccess(): Promise<void> {
    this.#rounds += 1
    const path = `/predictions/nobody-${this.#rounds}`
    await this.ask(path)
    await this.server.until(
      async () => this.logText('access_log.log'),
      (text) => text.includes(path),
    )
  }

  /** The file of the log is of yesterday, so that its next line begins another. */
  async rollModelLog(): Promise<void> {
    // Nothing may be written between the change of its time and the opening.
    const printed = (): number => this.logText('model_log.log').split('printed').length
    const before = printed()
    await this.predict('other')
    await this.server.until(
      async () => printed(),
      (now) => now > before,
    )
    const yesterday = new Date(Date.now() - DAY_MS)
    utimesSync(this.logPath('model_log.log'), yesterday, yesterday)
    await this.reopenLogs()
    await this.predict('other')
  }

  /** Every file that was put aside is compressed. */
  async rolled(): Promise<void> {
    await this.rollModelLog()
    const logs = (): string[] =>
      readdirSync(join(this.server.folder, 'logs')).filter((name) => name.startsWith('model_log.'))
    await this.server.until(
      async () => logs(),
      (names) => names.every((name) => name === 'model_log.log' || name.endsWith('.gz')) && names.length > 1,
    )
  }

  /** A new key of the kind. */
  async rotate(): Promise<number> {
    const { management } = this.server.ports
    const headers = bearer(this.key('API'))
    return (await rawRequest(management, '/token?type=management', { method: 'GET', headers })).status
  }

  async managesWith(key: string): Promise<number> {
    const { management } = this.server.ports
    return (await rawRequest(management, '/models', { method: 'GET', headers: bearer(key) })).status
  }

  /** Gives out one more API key. */
  addApiKey(): void {
    this.#rounds += 1
    const name = `added-${this.#rounds}`
    writeApiKeys(
      ['load', name].map((each) => ({ name: each, scopes: ['inference'] })),
      this.#keysFile,
    )
    this.lastApiKey = `tsk_${name}`
  }

  async hasApiKey(key: string): Promise<void> {
    await this.server.until(
      async () => (await this.ask('/ping', { method: 'GET', headers: bearer(key) })).status,
      (status) => status === 200,
    )
  }

  async index(): Promise<string[]> {
    const { status, body } = await this.ask('/v2/repository/index', { body: '{}' })
    return status === 200 ? (JSON.parse(body) as { name: string }[]).map(({ name }) => name) : [`${status}`]
  }

  /** The console's page. */
  page(): Promise<RawResponse> {
    return rawRequest(this.server.ports.management, '/console/', { method: 'GET' })
  }

  /** Ends the load and the server. @returns how many streams were whole, and the server's status */
  async stop(): Promise<{ streams: number; status: number | null }> {
    const streams = await this.load.end()
    return { streams, status: await this.server.stop() }
  }

  async kill(): Promise<void> {
    this.#files.close()
    await this.server.stop('SIGKILL')
  }
}
