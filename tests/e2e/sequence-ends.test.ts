import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { writeApiKeys } from '../support/api-keys.ts'
import { modelFolder } from '../support/model-folder.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** Sequences that end in the test of their number. */
const MANY = 8000

/** A server with the model `sums`, whose handler writes down each end. */
class Rig {
  readonly #server: Server
  readonly #ends: string

  constructor(server: Server, ends: string) {
    this.#server = server
    this.#ends = ends
  }

  static async start(config: Record<string, unknown>): Promise<Rig> {
    const ends = join(tempDir(), 'ends')
    writeFileSync(ends, '')
    const keys = ['ann', 'bob'].map((name) => ({ name, scopes: ['inference', 'management'] }))
    const sequences = { sequenceBatching: true, maxNumSequence: 100, sequenceMaxIdleMSec: 600_000 }
    const server = await startServer({
      models: [modelFolder('sums', 'sequence-ends', { ...sequences, ...config, handler: { ends } })],
      flags: ['--disable-token-auth'],
      config: { api_keys_file: writeApiKeys(keys) },
    })
    server.headers = { authorization: 'Bearer tsk_ann' }
    await server.ready('sums')
    return new Rig(server, ends)
  }

  /** Adds a number. @returns status and sum */
  async add(key: string, id: string, number: number, more: Record<string, string> = {}): Promise<string> {
    const headers = {
      authorization: `Bearer tsk_${key}`,
      'content-type': 'text/plain',
      ts_request_sequence_id: id,
      ...more,
    }
    const path = '/predictions/sums'
    const { status, body } = await rawRequest(this.#server.ports.inference, path, {
      headers,
      body: String(number),
    })
    return `${status} ${body}`
  }

  /** Sequences with an entry in the cache of the worker. */
  async entries(): Promise<number> {
    const { json } = await this.#server.manage('GET', '/models/sums?customized=true')
    return (json[0] as { customizedMetadata: { entries: number } }).customizedMetadata.entries
  }

  /** The ends that the handler heard of, sorted, once there are that many. */
  ended(count: number): Promise<string[]> {
    return this.#server.until(
      () => Promise.resolve(readFileSync(this.#ends, 'utf8').split('\n').slice(0, -1).sort()),
      ({ length }) => length >= count,
    )
  }

  scale(workers: number): Promise<unknown> {
    return this.#server.manage('PUT', `/models/sums?min_worker=${workers}&synchronous=true`)
  }

  stop(): Promise<number | null> {
    return this.#server.stop()
  }
}

const LAST = { ts_request_sequence_end: 'true' }
const FIRST = { ts_request_sequence_start: 'true' }

test('nothing of a sequence is left for the next one with its id, of another key, however it ended', async () => {
  const rig = await Rig.start({ sequenceMaxIdleMSec: 300 })
  expect(await rig.add('ann', 'idle', 7)).toBe('200 7')
  expect(await rig.ended(1)).toEqual(['idle=7'])
  expect(await rig.add('bob', 'idle', 1)).toBe('200 1')
  expect(await rig.add('ann', 'client', 7, LAST)).toBe('200 7')
  expect(await rig.add('bob', 'client', 1)).toBe('200 1')
  expect(await rig.ended(4)).toEqual(['client=1', 'client=7', 'idle=1', 'idle=7'])
  expect(await rig.entries()).toBe(0)
})

test('a first request begins an open sequence anew', async () => {
  const rig = await Rig.start({})
  expect(await rig.add('ann', 'a', 7)).toBe('200 7')
  expect(await rig.add('bob', 'a', 1, FIRST)).toMatch(/^400 .*another API key/s)
  expect(await rig.add('ann', 'a', 1, FIRST)).toBe('200 1')
  expect(await rig.add('ann', 'a', 1)).toBe('200 2')
  expect(await rig.ended(1)).toEqual(['a=7'])
})

test('the handler hears of every end when workers are scaled away, and when the server stops', async () => {
  const rig = await Rig.start({ minWorkers: 2, maxWorkers: 2 })
  const ids = ['a', 'b', 'c', 'd']
  for (const id of ids) expect(await rig.add('ann', id, 3)).toBe('200 3')
  await rig.scale(1)
  expect(await rig.ended(2)).toHaveLength(2)
  expect(await rig.stop()).toBe(0)
  expect(await rig.ended(4)).toEqual(ids.map((id) => `${id}=3`))
})

test(`${MANY} ended sequences leave nothing in the worker`, async () => {
  const rig = await Rig.start({ maxNumSequence: MANY, batchSize: 64, maxBatchDelay: 0 })
  const ids = Array.from({ length: MANY }, (_, i) => `s${i}`)
  const sums = new Set<string>()
  while (ids.length > 0) {
    const some = ids.splice(0, 50)
    for (const sum of await Promise.all(some.map((id) => rig.add('ann', id, 1, LAST)))) sums.add(sum)
  }
  expect([...sums]).toEqual(['200 1'])
  expect(await rig.ended(MANY)).toHaveLength(MANY)
  expect(await rig.entries()).toBe(0)
})
