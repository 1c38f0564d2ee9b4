import { expect, test } from '@jest/globals'
import { ServeError } from '../../../common/errors.ts'
import { StreamInferSink } from '../../../frontend/dialects/open-inference/replies.ts'
import { Job } from '../../../frontend/jobs/job.ts'

const HEAD = { status: 200, headers: {} }

/** A stream whose items `late...` are read when the test says so. */
function stream(): {
  job: Job
  told: string[]
  read: (text: string) => void
  refuse: (error: ServeError) => void
  item: (text: string, more?: boolean) => boolean
} {
  const told: string[] = []
  const waiting: { resolve: (text: string) => void; reject: (error: Error) => void }[] = []
  const reader = {
    read: (_head: object, body: Uint8Array) => {
      const text = Buffer.from(body).toString()
      if (!text.startsWith('late')) return text
      return new Promise<string>((resolve, reject) => waiting.push({ resolve, reject }))
    },
    failure: (error: ServeError) => error,
  }
  const sink = new StreamInferSink<string>(reader, {
    item: (_head, text) => {
      told.push(text)
      return true
    },
    end: () => void told.push('end'),
    fail: ({ message }) => void told.push(`failed: ${message}`),
  })
  const request = { requestId: 'r', modelName: 'm', method: 'handle' as const, headers: '', parts: [] }
  const job = new Job(request, sink)
  sink.job = job
  const holder = { abandon: () => void told.push('stopped'), drained: () => void told.push('drained') }
  job.started(holder)
  return {
    job,
    told,
    read: (text) => waiting.shift()!.resolve(text),
    refuse: (error) => waiting.shift()!.reject(error),
    item: (text, more = true) => job.respond({ ...HEAD, body: Buffer.from(text), more }),
  }
}

const turns = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('items wait for one that is read in a thread, and so does the worker', async () => {
  const { told, read, item, job } = stream()
  expect([item('a'), item('late'), item('b')]).toEqual([true, false, false])
  expect(told).toEqual(['a'])
  read('L')
  await turns()
  expect(told).toEqual(['a', 'L', 'b', 'drained'])
  expect(item('c')).toBe(true)
  item('late', false)
  expect(job.ended).toBe(true)
  read('M')
  await turns()
  expect(told.slice(4)).toEqual(['c', 'M', 'end'])
})

test('a failure comes after the items that wait', async () => {
  const { told, read, item, job } = stream()
  item('late')
  item('b')
  job.fail(new ServeError('WORKER_LOST', 'gone'))
  expect(told).toEqual([])
  read('L')
  await turns()
  expect(told).toEqual(['L', 'b', 'failed: gone'])
})

test('an item that cannot be read ends the stream once, and nothing follows it', async () => {
  const { told, refuse, item } = stream()
  item('late')
  item('b')
  refuse(new ServeError('INVALID_OUTPUT', 'no tensor'))
  await turns()
  expect(told).toEqual(['stopped', 'failed: no tensor'])
})

test('so does the last one, after the handler has ended', async () => {
  const { told, refuse, item } = stream()
  item('a')
  item('late', false)
  refuse(new ServeError('INVALID_OUTPUT', 'no tensor'))
  await turns()
  expect(told).toEqual(['a', 'failed: no tensor'])
})
