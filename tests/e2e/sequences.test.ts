import { beforeAll, describe, expect, test } from '@jest/globals'
import { Gate } from '../support/gate.ts'
import { modelFolder } from '../support/model-folder.ts'
import { RawRequest, rawRequest, type RawRequestOptions, type RawResponse } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const ID = 'ts_request_sequence_id'

const SEQUENCES = {
  sequenceBatching: true,
  minWorkers: 2,
  maxWorkers: 2,
  maxNumSequence: 4,
  sequenceMaxIdleMSec: 60_000,
  maxSequenceJobQueueSize: 10,
}

let server: Server

beforeAll(async () => {
  server = await startServer({
    models: [
      modelFolder('sums', 'sequences', { ...SEQUENCES, batchSize: 4, maxNumSequence: 100 }),
      modelFolder('few', 'sequences', { ...SEQUENCES, maxNumSequence: 2, maxSequenceJobQueueSize: 1 }),
      modelFolder('idle', 'sequences', { ...SEQUENCES, sequenceMaxIdleMSec: 300 }),
      modelFolder('short', 'sequences', { ...SEQUENCES, sequenceTimeoutMSec: 600 }),
      modelFolder('streams', 'sequences', { ...SEQUENCES, batchSize: 1, continuousBatching: true }),
      modelFolder('tickets', 'sequences', { ...SEQUENCES, useJobTicket: true }),
    ],
  })
  for (const model of ['sums', 'few', 'idle', 'short', 'streams', 'tickets']) await server.ready(model)
})

function options(body: string, id?: string, more: Record<string, string> = {}): RawRequestOptions {
  return {
    body,
    headers: { 'content-type': 'text/plain', ...(id === undefined ? {} : { [ID]: id }), ...more },
  }
}

function predict(
  model: string,
  body: string,
  id?: string,
  more?: Record<string, string>,
): Promise<RawResponse> {
  return rawRequest(server.ports.inference, `/predictions/${model}`, options(body, id, more))
}

/** One request after another; their answers and the workers that gave them. */
async function talk(
  model: string,
  id: string,
  words: string[],
): Promise<{ said: string[]; pids: Set<string> }> {
  const answers: RawResponse[] = []
  for (const word of words) answers.push(await predict(model, word, id))
  return {
    said: answers.map(({ body }) => body),
    pids: new Set(answers.map(({ headers }) => headers['x-pid']!)),
  }
}

function openSequences(model: string, count: number): Promise<unknown> {
  return server.until(
    () => server.describe(model),
    ([version]) => version!.openSequences === count,
  )
}

/** The worker of a sequence, which it tells when it has added 1. */
async function pidOf(id: string): Promise<string> {
  const { pids } = await talk('sums', id, ['1'])
  return [...pids].join()
}

/** Waits until that many requests of a model wait for a worker. */
function pending(model: string, count: number): Promise<unknown> {
  return server.until(
    () => server.describe(model),
    ([version]) => version!.jobQueueStatus.pendingRequests === count,
  )
}

/** Waits until that many workers of a model have something to do. */
function busyWorkers(model: string, count: number): Promise<unknown> {
  return server.until(
    () => server.describe(model),
    ([version]) => version!.workers.filter(({ inFlight }) => inFlight > 0).length === count,
  )
}

describe('a sequence over REST', () => {
  test('stays on one worker, in order; two of them have two workers', async () => {
    const [odd, even] = await Promise.all([
      talk('sums', 'seq_0', ['1', '3', '5', '7', '9']),
      talk('sums', 'seq_1', ['2', '4', '6', '8', '10']),
    ])
    expect(odd.said).toEqual(['1', '4', '9', '16', '25'])
    expect(even.said).toEqual(['2', '6', '12', '20', '30'])
    expect([odd.pids.size, even.pids.size]).toEqual([1, 1])
    expect([...odd.pids]).not.toEqual([...even.pids])
  })

  test('keeps the order of requests that were sent without waiting for answers', async () => {
    const gate = new Gate()
    const answers = [predict('sums', `wait ${gate.path} 1`, 'eager')]
    await busyWorkers('sums', 1)
    for (const word of ['2', '3', '4']) {
      answers.push(predict('sums', word, 'eager'))
      await pending('sums', answers.length - 1)
    }
    gate.open()
    expect((await Promise.all(answers)).map(({ body }) => body)).toEqual(['1', '3', '6', '10'])
  })

  test('many sequences at once: every sum is right', async () => {
    const all = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        talk(
          'sums',
          `many-${i}`,
          ['1', '1', '1', '1'].map(() => String(i)),
        ),
      ),
    )
    all.forEach(({ said, pids }, i) => {
      expect(said).toEqual([1, 2, 3, 4].map((k) => String(k * i)))
      expect(pids.size).toBe(1)
    })
  })

  test('without an id begins with one that the server chose and tells', async () => {
    const first = await predict('sums', '5')
    const id = first.headers[ID]!
    expect(id).toMatch(/^ts-seq-[0-9a-f-]{36}$/)
    const second = await predict('sums', '6', id)
    expect([second.body, second.headers[ID]]).toEqual(['11', id])
  })

  test('ends when the handler says so, or the client', async () => {
    for (const bye of [
      () => predict('few', 'end', 'x'),
      () => predict('few', '1', 'x', { ts_request_sequence_end: 'true' }),
    ]) {
      await predict('few', '1', 'x')
      await openSequences('few', 1)
      expect((await bye()).status).toBe(200)
      await openSequences('few', 0)
    }
  })

  test('ends when it is idle', async () => {
    const gate = new Gate()
    const answer = predict('idle', `wait ${gate.path} 1`, 'x')
    await openSequences('idle', 1)
    gate.open()
    expect((await answer).body).toBe('1')
    await openSequences('idle', 0)
  })

  test('ends when its time is over though it is not idle', async () => {
    const before = performance.now()
    const sums: string[] = []
    do sums.push((await predict('short', '1', 'x')).body)
    while (sums.lastIndexOf('1') === 0 && performance.now() - before < 5000)
    expect(sums.at(-1)).toBe('1')
    expect(performance.now() - before).toBeGreaterThan(600)
  })

  test('more sequences, or more requests of one, than may wait are refused', async () => {
    const gate = new Gate()
    const busy = ['a', 'b'].map((id) => predict('few', `wait ${gate.path} 1`, id))
    await busyWorkers('few', 2)
    const waiting = predict('few', '1', 'a')
    await pending('few', 1)
    const many = 'Model \\"few\\" has 2 open sequences, the most that it may have.'
    for (const [id, words] of [
      ['a', 'The queue of sequence \\"a\\" of model \\"few\\" is full: 1 requests wait.'],
      ['c', many],
      [undefined, many],
    ] as const) {
      const refused = await predict('few', '1', id)
      expect([refused.status, refused.body]).toEqual([503, expect.stringContaining(words)])
    }
    gate.open()
    expect((await Promise.all([...busy, waiting])).map(({ body }) => body)).toEqual(['1', '1', '2'])
  })

  test('describe shows the mode', async () => {
    expect((await server.describe('few'))[0]).toMatchObject({
      stateful: true,
      sequenceMaxIdleMSec: 60_000,
      sequenceTimeoutMSec: 0,
      maxNumSequence: 2,
      maxSequenceJobQueueSize: 1,
    })
    const { json } = await server.manage('GET', '/models/few?customized=true')
    expect(json[0]).toMatchObject({ customizedMetadata: {} })
  })
})

describe('a worker that dies', () => {
  test('fails its own sequences and no others, and they may begin anew', async () => {
    const mine = await pidOf('crash-a')
    let other = 'crash-b'
    while ((await pidOf(other)) === mine) other += '+'
    const [end, goOn] = [new Gate(), new Gate()]
    const crashing = predict('sums', `crash ${end.path}`, 'crash-a')
    await busyWorkers('sums', 1)
    const lasting = predict('sums', `wait ${goOn.path} 1`, other)
    await busyWorkers('sums', 2)
    const waiting = predict('sums', '1', 'crash-a')
    await pending('sums', 1)
    end.open()
    for (const answer of [await crashing, await waiting]) {
      expect(answer.status).toBe(500)
      expect(answer.body).toContain('Worker died.')
    }
    goOn.open()
    expect((await lasting).body).toBe('2')
    expect((await talk('sums', other, ['1'])).said).toEqual(['3'])
    expect((await talk('sums', 'crash-a', ['1', '2'])).said).toEqual(['1', '3'])
    await server.ready('sums')
    const fresh = await talk('sums', 'fresh', ['7', '7'])
    expect(fresh.said).toEqual(['7', '14'])
    expect([mine, await pidOf(other)]).not.toContain([...fresh.pids].join())
  })
})

describe('a sequence with continuous batching', () => {
  test('hears a word while a stream of it runs', async () => {
    const first = await predict('streams', '7')
    const id = first.headers[ID]!
    const stream = new RawRequest(server.ports.inference, '/predictions/streams', options('stream', id))
    await stream.gotChunks(3)
    expect((await predict('streams', 'stop', id)).body).toBe('stopped')
    const { chunks, complete, headers } = await stream.done
    expect(complete).toBe(true)
    expect(new Set(chunks.map(String))).toEqual(new Set(['7\n']))
    expect(headers[ID]).toBe(id)
    expect((await predict('streams', 'end', id)).body).toBe('ended')
    await openSequences('streams', 0)
  })

  test('opened and closed more often than there may be at a time', async () => {
    for (let i = 0; i < 10; i += 1) {
      const { said } = await talk('streams', `again-${i}`, ['2', '4', 'end'])
      expect(said).toEqual(['2', '6', 'ended'])
    }
  })
})

describe('a sequence with job tickets', () => {
  test('gets them while its worker is free', async () => {
    expect((await talk('tickets', 'a', ['1', '2', '3'])).said).toEqual(['1', '3', '6'])
    const gate = new Gate()
    const busy = predict('tickets', `wait ${gate.path} 1`, 'a')
    await busyWorkers('tickets', 1)
    expect((await predict('tickets', '1', 'a')).status).toBe(503)
    expect((await predict('tickets', '1', 'b')).status).toBe(200)
    gate.open()
    expect((await busy).body).toBe('7')
  })
})
