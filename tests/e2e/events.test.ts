import { beforeAll, expect, test } from '@jest/globals'
import type { EventTopic, ServerEvents } from '../../common/server-events.ts'
import { COUNT, countBody, ECHO } from '../support/count.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

/** Too long to end by itself before a test is over. */
const STREAM = { n: 100_000, delay: 10 }

let server: Server

beforeAll(async () => {
  server = await startServer({ models: [COUNT, ECHO] })
  await server.ready('count')
})

/** The events of a viewer, one after the other. */
class Watching {
  readonly status: number
  readonly #response: Response
  readonly #reader: ReadableStreamDefaultReader<string>
  #text = ''

  constructor(response: Response) {
    this.status = response.status
    this.#response = response
    this.#reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  }

  static async open(query = '', from = server): Promise<Watching> {
    return new Watching(await fetch(`http://127.0.0.1:${from.ports.management}/events${query}`))
  }

  get contentType(): string | null {
    return this.#response.headers.get('content-type')
  }

  /** The next event; undefined: the stream has ended. */
  async next(): Promise<{ topic: string; data: string } | undefined> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      const event = this.#text.slice(0, Math.max(0, end))
      if (end !== -1) this.#text = this.#text.slice(end + 2)
      const [, topic, data] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? []
      if (topic !== undefined) return { topic, data: data! }
      if (end !== -1) continue
      const { done, value } = await this.#reader.read()
      if (done) return undefined
      this.#text += value
    }
  }

  async until<Topic extends EventTopic>(
    topic: Topic,
    isIt: (event: ServerEvents[Topic]) => boolean = () => true,
  ): Promise<ServerEvents[Topic]> {
    for (;;) {
      const event = await this.next()
      if (event === undefined) throw new Error(`The stream ended without ${topic}`)
      if (event.topic !== topic) continue
      const data = JSON.parse(event.data) as ServerEvents[Topic]
      if (isIt(data)) return data
    }
  }

  close(): Promise<void> {
    return this.#reader.cancel()
  }
}

function begin(id: string): Promise<Response> {
  const url = `http://127.0.0.1:${server.ports.inference}/predictions/count`
  return fetch(url, { method: 'POST', ...countBody({ id, ...STREAM }) })
}

test('a viewer sees an open stream grow, and no longer after it was cancelled', async () => {
  const response = await begin('seen')
  const id = response.headers.get('x-request-id')!
  const watching = await Watching.open('?topics=overview,requests')
  expect(watching.contentType).toBe('text/event-stream; charset=utf-8')
  const { models, server: own } = await watching.until('overview')
  expect(models.map(({ modelName }) => modelName)).toEqual(['count', 'echo'])
  expect(models[0]).toMatchObject({
    modelVersion: '1.0',
    isDefault: true,
    state: 'ready',
    open: 1,
    streams: 1,
  })
  expect(own).toMatchObject({ openRequests: 1, draining: false })
  const { requests, total } = await watching.until('requests')
  expect(total).toBe(1)
  expect(requests).toMatchObject([{ id, modelName: 'count', api: 'torchserve', client: '127.0.0.1' }])
  const { items, bytes } = requests[0]!
  const isMore = ({ requests: [one] }: ServerEvents['requests']): boolean =>
    one !== undefined && one.items > items && one.bytes > bytes && one.lastGapMs !== undefined
  await watching.until('requests', isMore)
  await rawRequest(server.ports.management, `/requests/${id}`, { method: 'DELETE' })
  await watching.until('requests', ({ requests: left }) => left.length === 0)
  const { models: after } = await watching.until('overview')
  expect(after[0]!.counts.stream).toMatchObject({ cancelled: 1 })
  expect(after[0]!.counts.items).toBeGreaterThan(items)
  await expect(response.text()).rejects.toThrow()
  await watching.close()
})

test('topics and requests choose what comes; the rest is refused with its reason', async () => {
  const open = await Promise.all([begin('one'), begin('two')])
  const watching = await Watching.open('?topics=requests&requests=1')
  const first = await watching.until('requests', ({ total }) => total === 2)
  expect(first.requests).toHaveLength(1)
  expect((await watching.next())?.topic).toBe('requests')
  await watching.close()
  for (const response of open) await response.body!.cancel()
  for (const query of ['topics=', 'topics=overview,x', 'requests=-1', 'requests=5001', 'requests=']) {
    const { status, body } = await rawRequest(server.ports.management, `/events?${query}`, { method: 'GET' })
    expect([status, body]).toEqual([400, expect.stringMatching(/Parameter (topics|requests) must be/)])
  }
})

test('the log has the last lines at first, and shows markup of a client as it is', async () => {
  const watching = await Watching.open('?topics=log')
  const { lines, dropped } = await watching.until('log')
  expect(dropped).toBe(0)
  expect(lines.some(({ message }) => message === 'Model server started.')).toBe(true)
  const markup = '<script>alert(1)</script>'
  const path = `/models/echo?min_worker=1&${encodeURIComponent(markup)}=1`
  await rawRequest(server.ports.management, path, { method: 'PUT' })
  const added = await watching.until('log')
  expect(added.lines.some(({ message }) => message.includes(markup))).toBe(true)
  await watching.close()
})

test('HEAD tells what GET would, and watches nothing', async () => {
  const answers = await Promise.all(
    Array.from({ length: 33 }, () => rawRequest(server.ports.management, '/events', { method: 'HEAD' })),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  expect(answers[0]!.headers['content-type']).toBe('text/event-stream; charset=utf-8')
})

test('the 33rd viewer is refused, and one may come when another has left', async () => {
  const all = await Promise.all(Array.from({ length: 32 }, () => Watching.open('?topics=overview')))
  expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]))
  const { status, body } = await rawRequest(server.ports.management, '/events', { method: 'GET' })
  expect([status, body]).toEqual([429, expect.stringContaining('32 viewers')])
  await all[0]!.close()
  const next = await server.until(
    () => Watching.open('?topics=overview'),
    (watching) => watching.status === 200,
  )
  for (const watching of [...all.slice(1), next]) await watching.close()
})

test('the streams end when the server stops, with a last overview that says so', async () => {
  const other = await startServer({ models: [ECHO] })
  const watching = await Watching.open('?topics=overview', other)
  await watching.until('overview')
  const last = watching.until('overview', ({ server: own }) => own.draining)
  const stopped = other.stop()
  await last
  expect(await watching.next()).toBeUndefined()
  await stopped
})

test('the start says where the console is, and it is there', async () => {
  const url = `http://127.0.0.1:${server.ports.management}/console`
  expect(server.output).toContain(`The console is at ${url}`)
  const response = await fetch(url)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  expect(await response.text()).toContain('<div id="console">')
})
