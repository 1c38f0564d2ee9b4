import { rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { ALL_DIALECTS, ask, DIALECTS, expectRefused, type PortDialect } from '../support/dialects.ts'
import { Gate } from '../support/gate.ts'
import { modelFolder } from '../support/model-folder.ts'
import { rawRequest, type RawResponse } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { WorkflowStore } from '../support/workflows.ts'

/** A model whose handler loads when the test lets it, or fails then. */
class GatedModel {
  readonly name: string
  /** As --models takes it. */
  readonly location: string
  readonly #gate = new Gate()

  constructor(name: string, fails = 'throw', config: Record<string, unknown> = {}) {
    this.name = name
    const own = { gate: this.#gate.path, fails, minWorkers: 1, maxWorkers: 2, ...config }
    this.location = modelFolder(name, 'gated-load', own)
  }

  get folder(): string {
    return this.location.slice(this.name.length + 1)
  }

  /** From now on every start of its handler loads. */
  loads(): void {
    writeFileSync(`${this.#gate.path}.works`, '')
    this.#gate.open()
  }

  /** From now on every start of its handler fails. */
  fails(): void {
    rmSync(`${this.#gate.path}.works`, { force: true })
    this.#gate.open()
  }

  /** From now on a start of its handler does not end. */
  holds(): void {
    rmSync(this.#gate.path)
  }
}

const predict = (server: Server, { name }: GatedModel): Promise<RawResponse> =>
  rawRequest(server.ports.inference, `/predictions/${name}`, { body: '{}' })

const statusOf = ({ name }: PortDialect): string => {
  if (name.endsWith('Predictions2') || (name.endsWith('(Triton)') && name.includes('Stream')))
    return 'error_message'
  if (name.startsWith('V2 Model') && !name.endsWith('(TorchServe)')) return 'FAILED_PRECONDITION'
  const isGrpc = name.startsWith('V2 Model') || (name.startsWith('TorchServe ') && !name.includes('/'))
  return isGrpc ? 'UNAVAILABLE' : '503'
}

/** The id that clients read, and the line of the log with the same. */
async function loggedOf(server: Server, body: string): Promise<string> {
  const id = /under the id ([0-9a-f]{12})\./.exec(body)?.[1]
  const [line] = await server.lines(`(id ${id})`)
  return line!
}

async function failed(server: Server, { name }: GatedModel): Promise<void> {
  await server.until(
    () => server.describe(name),
    ([model]) => model!.failure !== undefined,
  )
}

/** How many starts of this model's handlers have come to the gate. */
function startsOf(server: Server, { name }: GatedModel): number {
  const line = new RegExp(`W-\\d+-${name}_1\\.0.*gated-load waits`)
  return server.output.filter((each) => line.test(each)).length
}

const never = new GatedModel('never')
const relapsed = new GatedModel('relapsed')
const waiting = new GatedModel('waiting')
const exits = new GatedModel('exits', 'exit')
const memory = new GatedModel('memory', 'memory')
const hangs = new GatedModel('hangs', 'hang', { startupTimeout: 1 })
const pair = new GatedModel('pair', 'throw', { minWorkers: 2 })
const scaled = new GatedModel('scaled')
const replaced = new GatedModel('replaced')
const crashed = new GatedModel('crashed', 'throw', { maxRetryTimeoutInSec: 0 })
const ALL = [never, relapsed, waiting, exits, memory, hangs, pair, scaled, replaced, crashed]

const store = new WorkflowStore()
let server: Server

async function kill(model: GatedModel, index = 0): Promise<void> {
  const [description] = await server.describe(model.name)
  process.kill(description!.workers[index]!.pid, 'SIGKILL')
}

/** Lets it fail, and holds its next start: no answer waits for the end of that. */
async function failAndHold(model: GatedModel): Promise<void> {
  model.fails()
  await failed(server, model)
  model.holds()
  const before = startsOf(server, model)
  await server.until(
    () => Promise.resolve(startsOf(server, model)),
    (count) => count > before,
  )
}

beforeAll(async () => {
  server = await startServer({
    models: ALL.map(({ location }) => location),
    modelStore: dirname(replaced.folder),
    config: { ...ALL_DIALECTS, workflow_store: store.folder },
  })
})

describe('a model that no worker can load', () => {
  test('its waiting requests are answered when it fails, with the class of the cause and an id', async () => {
    const asked = [predict(server, waiting), predict(server, waiting)]
    await server.until(
      () => server.describe('waiting'),
      ([model]) => model!.jobQueueStatus.pendingRequests === 2,
    )
    waiting.fails()
    for (const { status, body } of await Promise.all(asked)) {
      expect(status).toBe(503)
      expect(JSON.parse(body)).toEqual({
        code: 503,
        type: 'ServiceUnavailableException',
        message: expect.stringMatching(
          /^Model "waiting" cannot serve: the handler threw while it loaded\. The server's log has the whole cause under the id [0-9a-f]{12}\.$/,
        ) as unknown,
      })
      expect(body).not.toContain('planted')
      expect(await loggedOf(server, body)).toContain('planted words at /planted/path')
    }
  })

  describe('that never was loaded', () => {
    beforeAll(() => failAndHold(never))

    test.each(DIALECTS.map((dialect): [string, PortDialect] => [dialect.name, dialect]))(
      'answers at once, while it is tried again: %s',
      async (_name, dialect) => {
        const asked = await ask(server, dialect, 'never', {})
        expectRefused(asked, statusOf(dialect), 'cannot serve: the handler threw while it loaded.')
        expect(JSON.stringify(asked)).not.toContain('planted')
      },
    )

    test('is in the repository index with the class of the cause, which needs no right to manage', async () => {
      const { body } = await rawRequest(server.ports.inference, '/v2/repository/index', { body: '{}' })
      const entry = (JSON.parse(body) as { name: string }[]).find(({ name }) => name === 'never')
      expect(entry).toMatchObject({ reason: 'the handler threw while it loaded' })
      expect(body).not.toContain('planted')
    })

    test('says so in describe, with the whole cause; the server stays healthy while it is tried again', async () => {
      const [{ failure } = {}] = await server.describe('never')
      expect(failure).toMatchObject({ reason: 'planted words at /planted/path' })
      const { body } = await predict(server, never)
      expect(body).toContain(`under the id ${failure!.id}.`)
      expect((await rawRequest(server.ports.inference, '/ping', { method: 'GET' })).status).toBe(200)
    })

    test('serves when it is loaded after all', async () => {
      never.loads()
      await server.ready('never')
      expect((await predict(server, never)).body).toBe('served')
      expect((await server.describe('never'))[0]).not.toHaveProperty('failure')
    })
  })

  describe('that was loaded before', () => {
    beforeAll(async () => {
      relapsed.loads()
      await server.ready('relapsed')
      relapsed.fails()
      await kill(relapsed)
      await failAndHold(relapsed)
    })

    test.each(DIALECTS.map((dialect): [string, PortDialect] => [dialect.name, dialect]))(
      'answers at once: %s',
      async (_name, dialect) => {
        const asked = await ask(server, dialect, 'relapsed', {})
        expectRefused(asked, statusOf(dialect), 'cannot serve: the handler threw while it loaded.')
      },
    )
  })

  test.each([
    ['exits', exits, 'its worker exited with code 3 while it loaded'],
    ['memory', memory, 'out of memory while it loaded'],
    ['hangs', hangs, 'it was not loaded in time'],
  ])('tells only the class of the cause: %s', async (_name, model, cause) => {
    model.fails()
    await failed(server, model)
    const { status, body } = await predict(server, model)
    expect([status, (JSON.parse(body) as { message: string }).message]).toEqual([
      503,
      expect.stringContaining(`Model "${model.name}" cannot serve: ${cause}. `),
    ])
    expect(await loggedOf(server, body)).toContain('Load failed')
  })

  test('whose worker is not started again answers at once too', async () => {
    crashed.loads()
    await server.ready('crashed')
    await kill(crashed)
    await failed(server, crashed)
    const { status, body } = await predict(server, crashed)
    expect([status, body]).toEqual([
      503,
      expect.stringContaining('its worker was killed by SIGKILL and is not started again.'),
    ])
    expect(await loggedOf(server, body)).toContain('The process was killed by SIGKILL')
  })

  test('serves as long as one worker does', async () => {
    pair.loads()
    await server.ready('pair')
    pair.fails()
    await kill(pair, 0)
    await server.until(
      () => server.worker('pair'),
      ({ lastExit }) => lastExit?.reason.includes('planted') === true,
    )
    expect((await predict(server, pair)).body).toBe('served')
    await kill(pair, 1)
    await failed(server, pair)
    expect((await predict(server, pair)).status).toBe(503)
  })

  test('serves when a worker is added that can load it', async () => {
    await failAndHold(scaled)
    expect((await predict(server, scaled)).status).toBe(503)
    await server.manage('PUT', '/models/scaled?min_worker=2')
    const asked = predict(server, scaled)
    await server.until(
      () => server.describe('scaled'),
      ([model]) => model!.jobQueueStatus.pendingRequests === 1,
    )
    scaled.loads()
    expect((await asked).body).toBe('served')
  })

  test('serves when it was registered again', async () => {
    replaced.fails()
    await failed(server, replaced)
    expect((await server.manage('DELETE', '/models/replaced')).status).toBe(200)
    expect((await predict(server, replaced)).status).toBe(404)
    replaced.loads()
    await server.manage('POST', '/models?url=replaced&initial_workers=1&synchronous=true')
    expect((await predict(server, replaced)).body).toBe('served')
  })

  test('is why a workflow with it answers 503', async () => {
    replaced.loads()
    await store.register(
      server,
      'flow',
      'models: {first: {url: replaced}, last: {url: replaced}}\ndag: {first: [last]}',
    )
    expect((await rawRequest(server.ports.inference, '/wfpredict/flow', { body: '{}' })).body).toBe('served')
    replaced.fails()
    const { pid } = await server.worker('flow__last')
    process.kill(pid, 'SIGKILL')
    await server.until(
      () => server.describe('flow__last'),
      ([model]) => model!.failure !== undefined,
    )
    const { status, body } = await rawRequest(server.ports.inference, '/wfpredict/flow', { body: '{}' })
    expect([status, body]).toEqual([503, expect.stringContaining('the handler threw while it loaded.')])
  })
})
