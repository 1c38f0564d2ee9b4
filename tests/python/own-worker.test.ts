import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { stringify } from 'yaml'
import { isRunning } from '../support/processes.ts'
import { RawRequest, type RawResponse } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** A model with a handler of tests/support/python/own-handlers, without an archive. */
function model(name: string, handler: string, config: Record<string, unknown> = {}, entry = ''): string {
  const folder = join(tempDir(), name)
  mkdirSync(join(folder, 'MAR-INF'), { recursive: true })
  copyFileSync(
    join(REPOSITORY, 'tests', 'support', 'python', 'own-handlers', `${handler}.py`),
    join(folder, 'handler.py'),
  )
  writeFileSync(join(folder, 'model-config.yaml'), stringify(config))
  const about = {
    modelName: name,
    modelVersion: '1.0',
    handler: `handler.py${entry}`,
    configFile: 'model-config.yaml',
  }
  writeFileSync(join(folder, 'MAR-INF', 'MANIFEST.json'), JSON.stringify({ runtime: 'python', model: about }))
  return `${name}=${folder}`
}

function ask(server: Server, name: string, body: object | string, headers = {}): RawRequest {
  const isText = typeof body === 'string'
  return new RawRequest(server.ports.inference, `/predictions/${name}`, {
    body: isText ? body : JSON.stringify(body),
    headers: { 'content-type': isText ? 'text/plain' : 'application/json', ...headers },
  })
}

/** The file to which a handler writes what happens to it. */
class Events {
  readonly path = join(tempDir(), 'events')

  get lines(): string[] {
    return existsSync(this.path) ? readFileSync(this.path, 'utf8').trim().split('\n') : []
  }
}

/** The oldest Python that the worker supports and the newest, where pyenv has them; else the one on PATH. */
function interpreters(): string[] {
  const versions = join(process.env['PYENV_ROOT'] ?? join(homedir(), '.pyenv'), 'versions')
  const all = existsSync(versions) ? readdirSync(versions) : []
  const numbered = all
    .flatMap((name) => {
      const minor = Number(/^3\.(\d+)\.\d+$/.exec(name)?.[1])
      return minor >= 9 ? [{ minor, path: join(versions, name, 'bin', 'python3') }] : []
    })
    .sort((a, b) => a.minor - b.minor)
  return numbered.length < 2 ? ['python3'] : [numbered[0]!.path, numbered.at(-1)!.path]
}

describe.each(interpreters())('with %s', (python) => {
  let server: Server

  const hooks = new Events()
  const sequences = { sequenceBatching: true, sequenceMaxIdleMSec: 60_000 }

  beforeAll(async () => {
    server = await startServer({
      config: { python, model_metrics_auto_detect: true },
      models: [
        model('unary', 'unary', { own: { key: 1 } }),
        model('batched', 'unary', { batchSize: 4, maxBatchDelay: 20_000 }),
        model('send', 'send'),
        model('generator', 'generator'),
        model('async_send', 'async_send', { maxConcurrency: 4 }),
        model('async_generator', 'async_generator', { maxConcurrency: 4 }),
        model('blocking', 'blocking', { asyncCommunication: true, maxConcurrency: 4 }),
        model('Plain', 'hooks', { events: hooks.path, ...sequences }, ':Plain'),
        model('Async', 'hooks', { events: hooks.path, ...sequences }, ':Async'),
        model('ranks', 'hooks', { events: hooks.path, parallelType: 'tp', parallelLevel: 2 }, ':Plain'),
      ],
    })
    const names = ['unary', 'batched', 'send', 'generator', 'async_send', 'async_generator', 'blocking']
    names.push('Plain', 'Async', 'ranks')
    for (const name of names) await server.ready(name)
  })

  test('a handler sees its request, and sets status, headers and content type of its response', async () => {
    const answer = await ask(server, 'unary', { a: 1 }, { 'x-mine': 'yes' }).done
    expect(answer).toMatchObject({ status: 202, reason: 'Taken' })
    expect(answer.headers).toMatchObject({ 'x-own': '1', 'content-type': 'application/x-own' })
    expect(JSON.parse(answer.body)).toMatchObject({
      types: { body: 'dict' },
      header: 'yes',
      id: true,
      worker: 'python',
      model: 'unary',
      config: { key: 1 },
    })
    await server.lines('printed by the handler')
    await server.lines('initialized')
    await server.until(
      () => server.metric('OwnCounter', { Kind: 'test' }),
      (count) => count >= 2,
    )
  })

  test('text is a str, other bytes a bytearray', async () => {
    const types = async (type: string): Promise<unknown> => {
      const answer = await ask(server, 'unary', 'x', { 'content-type': type }).done
      return (JSON.parse(answer.body) as { types: unknown }).types
    }
    expect(await types('text/plain')).toEqual({ body: 'str' })
    expect(await types('application/octet-stream')).toEqual({ body: 'bytearray' })
  })

  test.each(['send', 'generator', 'async_send', 'async_generator'])(
    'the items of %s reach the client one by one',
    async (name) => {
      const { path: events } = new Events()
      const answer = await ask(server, name, { events, n: 20 }).done
      expect(answer.complete).toBe(true)
      const texts = answer.chunks.map(String).filter((text) => text !== '')
      expect(texts).toEqual(Array.from({ length: 20 }, (_, count) => String(count)))
    },
  )

  test('one request of a batch fails, the others are answered', async () => {
    const bodies = [{}, { fail: 'teapot' }, { fail: 'unencodable' }, {}]
    const answers = await Promise.all(bodies.map((body) => ask(server, 'batched', body).done))
    expect(answers.map(({ status }) => status)).toEqual([202, 418, 503, 202])
    expect(answers[1]!.body).toContain('no coffee')
  })

  test('what a handler raises is in the log with its line; the client gets no word of it', async () => {
    const answer = await ask(server, 'unary', { fail: 'raise' }).done
    expect(answer.status).toBe(503)
    expect(answer.body).toContain('Prediction failed')
    expect(answer.body).not.toContain('unknown')
    await server.lines(/HANDLER_FAILED: KeyError: 'unknown' \(handler\.py, line \d+\)/)
  })

  test('sys.exit ends the worker, and it serves again', async () => {
    const before = await server.worker('unary')
    expect((await ask(server, 'unary', { fail: 'exit' }).done).body).toContain('Worker died.')
    await server.until(
      () => server.worker('unary'),
      ({ pid, status }) => pid !== before.pid && status === 'READY',
    )
    expect((await ask(server, 'unary', {}).done).status).toBe(202)
  })

  test.each([
    ['send', 'ended by RequestCancelled client left'],
    ['generator', 'ended by GeneratorExit'],
    ['async_send', 'ended by CancelledError'],
    ['async_generator', 'ended by CancelledError'],
  ])('%s ends when its client leaves', async (name, words) => {
    const events = new Events()
    const request = ask(server, name, { events: events.path, n: 100_000, delay: 0.01 })
    await request.gotChunks(2)
    request.destroy()
    await server.until(
      () => Promise.resolve(events.lines),
      (lines) => lines.includes(words),
    )
    expect(events.lines.at(-1)).toBe(words)
    // Its slot is free.
    expect((await ask(server, name, { events: events.path, n: 2 }).done).complete).toBe(true)
  })

  test('blocking code learns of its cancellation while others run beside it', async () => {
    const events = new Events()
    const request = ask(server, 'blocking', { events: events.path, n: 2 })
    await server.until(
      () => Promise.resolve(events.lines),
      (lines) => lines.includes('item 0'),
    )
    expect((await ask(server, 'blocking', { events: new Events().path, n: 1 }).done).body).toBe('done')
    request.destroy()
    await server.until(
      () => Promise.resolve(events.lines),
      (lines) => lines.includes('ended by on_cancel'),
    )
  })

  test.each(['async_send', 'async_generator'])(
    'a client of %s that does not read stops its own request only',
    async (name) => {
      const events = new Events()
      const size = 100_000
      const stalled = ask(server, name, { events: events.path, n: 2_000, size })
      stalled.socket.pause()
      await server.until(
        () => Promise.resolve(events.lines.length),
        (count) => count >= 3,
      )
      const others = (): Promise<RawResponse> => ask(server, name, { events: new Events().path, n: 20 }).done
      let made = -1
      // It stands still when the buffers of both sockets and the window are full.
      while (made !== events.lines.length) {
        made = events.lines.length
        for (let i = 0; i < 20; i += 1) expect((await others()).complete).toBe(true)
      }
      expect(made * size).toBeLessThan(20_000_000)
      stalled.destroy()
      await server.until(
        () => Promise.resolve(events.lines),
        (lines) => lines.at(-1)!.startsWith('ended by'),
      )
    },
  )

  test('a reader that stalls holds a blocking handler back until it reads again', async () => {
    const events = new Events()
    const request = ask(server, 'generator', { events: events.path, n: 300, size: 100_000 })
    request.socket.pause()
    await server.until(
      () => Promise.resolve(events.lines.length),
      (count) => count >= 3,
    )
    let made = -1
    while (made !== events.lines.length) {
      made = events.lines.length
      for (let i = 0; i < 20; i += 1) await ask(server, 'blocking', { events: new Events().path, n: 1 }).done
    }
    expect(made).toBeLessThan(200)
    request.socket.resume()
    expect((await request.done).complete).toBe(true)
    expect(events.lines).toHaveLength(299)
  })

  test.each(['Plain', 'Async'])('the optional functions of a class %s are called', async (name) => {
    const { json } = await server.manage('GET', `/models/${name}?customized=true`)
    expect(json).toMatchObject([{ customizedMetadata: { model: name } }])
    for (const sequence of ['a', 'b']) {
      const headers = { ts_request_sequence_id: `${name}-${sequence}`, ts_request_sequence_end: 'true' }
      expect((await ask(server, name, {}, headers).done).body).toBe('rank 0')
    }
    const failure = new RegExp(`raised in on_sequence_end: KeyError: '${name}-b'`)
    await server.lines(failure)
    await server.until(
      () => server.metric('Ended', { ModelName: name }),
      (count) => count === 2,
    )
    await server.manage('DELETE', `/models/${name}`)
    const expected = [`end of ${name}-a, kept`, `end of ${name}-b, kept`, 'shut down']
    await server.until(
      () => Promise.resolve(hooks.lines),
      (lines) => lines.slice(-3).join() === expected.join(),
    )
  })

  test('every rank of a group gets the request, and rank 0 answers', async () => {
    expect((await ask(server, 'ranks', {}).done).body).toBe('rank 0')
    expect(hooks.lines).toEqual(expect.arrayContaining(['rank 0 of 2', 'rank 1 of 2']))
  })

  test('metrics of requests arrive while another one runs', async () => {
    const long = ask(server, 'async_send', { events: new Events().path, n: 100_000, delay: 0.01 })
    await long.gotChunks(2)
    await server.until(
      async () => {
        await ask(server, 'async_send', { events: new Events().path, n: 1 }).done
        return server.metric('Sends')
      },
      (count) => count >= 1,
    )
    long.destroy()
  })

  test('a callback of on_cancel that raises does not end the worker', async () => {
    const before = await server.worker('blocking')
    const events = new Events()
    const request = ask(server, 'blocking', { events: events.path, n: 2, raise: true })
    await server.until(
      () => Promise.resolve(events.lines),
      (lines) => lines.includes('item 0'),
    )
    request.destroy()
    await server.lines('A callback raised: KeyError')
    expect(await server.worker('blocking')).toMatchObject({ pid: before.pid, status: 'READY' })
  })

  test('a forked child has Python’s own signal handlers', async () => {
    expect((await ask(server, 'unary', { child: 'signals' }).done).body).toBe('True')
  })

  test.each(['fork', 'program'])('kill -9 of the worker leaves no %s that it started', async (child) => {
    const pid = Number((await ask(server, 'unary', { child }).done).body)
    const worker = await server.worker('unary')
    expect(isRunning(pid)).toBe(true)
    process.kill(worker.pid, 'SIGKILL')
    await server.until(
      () => Promise.resolve(isRunning(pid)),
      (runs) => !runs,
    )
    await server.until(
      () => server.worker('unary'),
      (now) => now.pid !== worker.pid && now.status === 'READY',
    )
  })

  test('kill -9 of the server leaves nothing', async () => {
    const pids = [
      (await server.worker('unary')).pid,
      (await server.worker('async_send')).pid,
      Number((await ask(server, 'unary', { child: 'fork' }).done).body),
    ]
    await server.stop('SIGKILL')
    await server.until(
      () => Promise.resolve(pids.filter(isRunning)),
      (left) => left.length === 0,
    )
  })
})
