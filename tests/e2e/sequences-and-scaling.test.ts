import { beforeAll, describe, expect, test } from '@jest/globals'
import type { ModelDescription } from '../../frontend/models/operations.ts'
import { Gate } from '../support/gate.ts'
import { modelFolder } from '../support/model-folder.ts'
import { rawRequest, type RawResponse } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

/** Each look may add workers, and two quiet looks may end some. */
const QUICK = { targetQueueTime: 1, scaleUpInterval: 0.001, scaleDownAfter: 0.001, scaleToZeroAfter: 0.001 }
const SEQUENCES = {
  sequenceBatching: true,
  maxNumSequence: 100,
  maxSequenceJobQueueSize: 4,
  sequenceMaxIdleMSec: 600_000,
}

let server: Server

beforeAll(async () => {
  server = await startServer({
    models: [
      modelFolder('sums', 'sequences', { minWorkers: 1, maxWorkers: 3, scaling: QUICK, ...SEQUENCES }),
      modelFolder('many', 'sequences', { minWorkers: 1, maxWorkers: 3, scaling: QUICK, ...SEQUENCES }),
      modelFolder('fixed', 'sequences', { minWorkers: 2, maxWorkers: 2, ...SEQUENCES }),
    ],
  })
  for (const model of ['sums', 'many', 'fixed']) await server.ready(model)
})

function send(
  model: string,
  id: string,
  body: string,
  more: Record<string, string> = {},
): Promise<RawResponse> {
  const headers = { 'content-type': 'text/plain', ts_request_sequence_id: id, ...more }
  return rawRequest(server.ports.inference, `/predictions/${model}`, { headers, body })
}

function until(model: string, passes: (model: ModelDescription) => boolean): Promise<unknown> {
  return server.until(
    () => server.describe(model),
    ([version]) => passes(version!),
  )
}

const states = ({ workers }: ModelDescription): string =>
  workers
    .map(({ state }) => state)
    .sort()
    .join()

/** Adds 1 in each sequence, all at a time: each keeps a worker, for there are as many. */
async function together(model: string, ids: readonly string[]): Promise<RawResponse[]> {
  const gate = new Gate()
  const all: Promise<RawResponse>[] = []
  for (const id of ids) {
    all.push(send(model, id, `wait ${gate.path} 1`))
    await until(model, ({ workers }) => workers.filter(({ state }) => state === 'busy').length === all.length)
  }
  gate.open()
  return Promise.all(all)
}

const pidsOf = (answers: RawResponse[]): string[] => answers.map(({ headers }) => headers['x-pid']!)

describe('while workers come and go by the load, a sequence', () => {
  test('stays on its worker, which ends only after it', async () => {
    const ids = ['a', 'b', 'c']
    const first = await together('sums', ids)
    expect(first.map(({ body }) => body)).toEqual(['1', '1', '1'])
    expect(new Set(pidsOf(first)).size).toBe(3)
    await until('sums', (model) => states(model) === 'draining,draining,ready')
    const second = [await send('sums', 'a', '1'), await send('sums', 'b', '1'), await send('sums', 'c', '1')]
    expect(second.map(({ body }) => body)).toEqual(['2', '2', '2'])
    // More load brings them back.
    const more = await together('sums', ['d', 'e', 'f'])
    for (const answers of [second, more]) expect(pidsOf(answers).sort()).toEqual(pidsOf(first).sort())
    expect(pidsOf(second)).toEqual(pidsOf(first))
    const ends = await Promise.all([...ids, 'd', 'e', 'f'].map((id) => send('sums', id, 'end')))
    expect(ends.map(({ body }) => body)).toEqual(ends.map(() => 'ended'))
    await until('sums', (model) => states(model) === 'ready')
    expect(await server.metric('torchserve_ts_worker_deaths_total', { model_name: 'sums' })).toBe(0)
  })

  test('has no wrong sum and loses no request, among many in three waves', async () => {
    const talk = async (id: string) => {
      const answers: RawResponse[] = []
      for (const word of ['1', '2', '3', '4', 'end']) answers.push(await send('many', id, word))
      return answers
    }
    for (let wave = 0; wave < 3; wave += 1) {
      const ids = ['x', 'y', 'z'].map((name) => `${name}${wave}`)
      await together('many', ids)
      // The rule ends workers meanwhile.
      const all = await Promise.all(Array.from({ length: 30 }, (_, k) => talk(`s${wave}-${k}`)))
      for (const answers of all) {
        expect(answers.map(({ body }) => body)).toEqual(['1', '3', '6', '10', 'ended'])
        expect(new Set(pidsOf(answers)).size).toBe(1)
      }
      for (const id of ids) {
        expect((await send('many', id, '1')).body).toBe('2')
        expect((await send('many', id, 'end')).body).toBe('ended')
      }
      await until('many', ({ workers, openSequences }) => workers.length === 1 && openSequences === 0)
    }
  })
})

describe('a sequence whose worker is gone', () => {
  const LOST = 'has ended, and the state in it is lost. Begin the sequence again, with its first request.'

  /** Two sequences with a worker each. */
  async function pair(names: string[]): Promise<[string, string][]> {
    const answers = await together('fixed', names)
    return names.map((name, k) => [name, answers[k]!.headers['x-pid']!])
  }

  test('is told so at its next request, once; the others go on', async () => {
    const [[killed, pid], [other]] = (await pair(['k', 'l'])) as [[string, string], [string, string]]
    process.kill(Number(pid), 'SIGKILL')
    await until('fixed', ({ workers }) =>
      workers.every((worker) => worker.status === 'READY' && String(worker.pid) !== pid),
    )
    const told = await send('fixed', killed, '1')
    expect([told.status, (JSON.parse(told.body) as { message: string }).message]).toEqual([
      503,
      `The worker of sequence "k" of model "fixed" ${LOST}`,
    ])
    expect((await send('fixed', killed, '1')).body).toBe('1')
    expect((await send('fixed', other, '1')).body).toBe('2')
    await Promise.all([killed, other].map((id) => send('fixed', id, 'end')))
  })

  test('need not be: a call that scales ends a worker without sequences first', async () => {
    const answers = await pair(['p', 'q'])
    const newest = String((await server.describe('fixed'))[0]!.workers.at(-1)!.pid)
    const [stays, ends] = answers[0]![1] === newest ? ['p', 'q'] : ['q', 'p']
    expect((await send('fixed', ends, 'end')).body).toBe('ended')
    await server.manage('PUT', '/models/fixed?min_worker=1&synchronous=true')
    expect((await send('fixed', stays, '1')).body).toBe('2')
    await send('fixed', stays, 'end')
    await server.manage('PUT', '/models/fixed?min_worker=2&synchronous=true')
  })

  test('is told so when a call scaled it away', async () => {
    const [[lasting, pid], [, gone]] = (await pair(['m', 'n'])) as [[string, string], [string, string]]
    await server.manage('PUT', '/models/fixed?min_worker=1&synchronous=true')
    const left = (await server.describe('fixed'))[0]!.workers.map((worker) => String(worker.pid))
    expect([pid, gone]).toEqual(expect.arrayContaining(left))
    const answers = [await send('fixed', lasting, '1'), await send('fixed', 'n', '1')]
    const [kept, lost] = left[0] === pid ? answers : answers.reverse()
    expect(kept!.body).toBe('2')
    expect([lost!.status, lost!.body]).toEqual([503, expect.stringContaining(LOST)])
  })
})
