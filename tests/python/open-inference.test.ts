import { status as Status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { events } from '../support/events.ts'
import { inferenceV2Client, readAll, type Message } from '../support/grpc-clients.ts'
import { packPython } from '../support/python/archive.ts'
import { allReady, PYTHON_MS } from '../support/python/client.ts'
import { source } from '../support/python/models.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const HELLO = ['hello ', 'to ', 'you']
/** Has said two words when it ends in an error. */
const LATE = 'hello to fail'
const LONG = `${'word '.repeat(50)}end`

/** What a V2 event or message says, or its error. */
function said(event: unknown): string {
  const { outputs, error } = event as { outputs?: { data: string[] }[]; error?: string }
  return outputs?.[0]!.data[0] ?? `error: ${error}`
}

function message(text: string, over: Message = {}): Message {
  const contents = { bytes_contents: [Buffer.from(text)] }
  return {
    model_name: 'words',
    id: 'i',
    inputs: [{ name: 'text', shape: [1], datatype: 'BYTES', contents }],
    ...over,
  }
}

function words(got: Message): string {
  const [output] = got['outputs'] as { contents: { bytes_contents: Buffer[] } }[]
  return output!.contents.bytes_contents.toString()
}

/** Made by the real torch-model-archiver; its handler has only `handle`. */
await describePython('A .mar archive with a streaming Python handler, unchanged', (environment) => {
  let server: Server
  let mlserver: ReturnType<typeof inferenceV2Client>
  let triton: ReturnType<typeof inferenceV2Client>

  beforeAll(async () => {
    const store = tempDir()
    const one = 'minWorkers: 1\nmaxWorkers: 1\n'
    await packPython(environment, store, { name: 'words', handler: source('words'), config: one })
    await packPython(environment, store, {
      ...{ name: 'limited', handler: source('words'), config: `${one}cancelGraceMs: 200\n` },
    })
    server = await startServer({
      modelStore: store,
      models: [
        ...['words.mar', 'limited.mar'],
        pythonFolder('steps', 'steps', { continuousBatching: true }),
        pythonFolder('side', 'coroutine', { asyncCommunication: true }),
      ],
      config: {
        ...{ python: environment.python, metrics_mode: 'prometheus' },
        ...{ open_inference_grpc_port: 0, triton_grpc_port: 0 },
      },
    })
    await allReady(server, ['words', 'limited', 'steps', 'side'])
    mlserver = inferenceV2Client(server.ports.openInference, 'mlserver')
    triton = inferenceV2Client(server.ports.triton, 'triton')
  }, PYTHON_MS)

  afterAll(() => {
    mlserver.close()
    triton.close()
  })

  function post(path: string, body: object) {
    const headers = { 'content-type': 'application/json' }
    return rawRequest(server.ports.inference, path, { headers, body: JSON.stringify(body) })
  }

  const tensor = (text: string, name = 'text') => ({
    inputs: [{ name, shape: [1], datatype: 'BYTES', data: [text] }],
  })
  const infer = (text: string) => post('/v2/models/words/infer_stream', tensor(text))
  const complete = (prompt: string, more: object = {}) =>
    post('/v1/completions', { model: 'words', prompt, stream: true, ...more })

  async function discarded(): Promise<number> {
    return server.metric('torchserve_ts_discarded_responses_total', { model_name: 'words' })
  }

  /** Runs `leave`, and waits until the handler's frames were dropped and it serves the next request. */
  async function throwsAway(leave: () => Promise<void>): Promise<void> {
    const before = await discarded()
    await leave()
    await server.until(discarded, (count) => count > before + 1)
    expect(events((await infer('next one')).body).map(said)).toEqual(['next ', 'one'])
    expect((await server.worker('words')).restarts).toBe(0)
  }

  describe('infer_stream', () => {
    test('is an event for each frame', async () => {
      const body = JSON.stringify(tensor(LONG))
      const request = new RawRequest(server.ports.inference, '/v2/models/words/infer_stream', { body })
      await request.gotChunks(1)
      expect((await request.done).chunks).toHaveLength(51)
      const { headers, chunks } = await infer(HELLO.join(''))
      expect(headers['content-type']).toMatch(/^text\/event-stream/)
      expect(chunks.map((chunk) => said(events(chunk.toString())[0]))).toEqual(HELLO)
    })

    test('an error before the first event has its status', async () => {
      const failed = await infer('fail')
      expect([failed.status, JSON.parse(failed.body)]).toEqual([500, { error: 'Prediction failed' }])
      const refused = await infer('refuse')
      expect([refused.status, JSON.parse(refused.body)]).toEqual([422, { error: 'I do not say that' }])
    })

    test('an error after it is an event, and the end', async () => {
      const { status, body, complete } = await infer(LATE)
      expect([status, complete]).toEqual([200, true])
      expect(events(body).map(said)).toEqual(['hello ', 'to ', 'error: Prediction failed'])
    })

    test('a client that leaves: what the handler still says is thrown away', () =>
      throwsAway(async () => {
        const body = JSON.stringify(tensor(LONG))
        const request = new RawRequest(server.ports.inference, '/v2/models/words/infer_stream', { body })
        await request.gotChunks(2)
        request.destroy()
      }))

    test('with a limit: the worker is started again', async () => {
      const { pid } = await server.worker('limited')
      const body = JSON.stringify(tensor(LONG))
      const request = new RawRequest(server.ports.inference, '/v2/models/limited/infer_stream', { body })
      await request.gotChunks(2)
      request.destroy()
      await server.until(
        () => server.worker('limited'),
        ({ status, pid: now }) => status === 'READY' && now !== pid,
        PYTHON_MS,
      )
    })

    test('with continuous batching: who leaves is missing in the next step', async () => {
      const body = JSON.stringify(tensor(JSON.stringify({ name: 'leaver', n: 10_000, ms: 10 }), 'body'))
      const request = new RawRequest(server.ports.inference, '/v2/models/steps/infer_stream', { body })
      await request.gotChunks(3)
      request.destroy()
      const { json } = await server.manage('GET', '/models/steps?customized=true')
      expect(json[0]).toMatchObject({ customizedMetadata: { steps: expect.any(Number) } })
      expect((await server.worker('steps')).inFlight).toBe(0)
    })

    test('unary infer of the same handler joins what it says', async () => {
      const { status, body } = await post('/v2/models/words/versions/1.0/infer', tensor(HELLO.join('')))
      expect([status, said(JSON.parse(body))]).toEqual([200, 'hello to you'])
    })
  })

  describe('ModelStreamInfer as MLServer has it', () => {
    const stream = async (text: string) => {
      const duplex = mlserver.ModelStreamInfer()
      duplex.write(message(text))
      duplex.end()
      const { messages, error } = await readAll(duplex)
      return { texts: messages.map(words), error }
    }

    test('is a message for each frame', async () => {
      expect(await stream(HELLO.join(''))).toEqual({ texts: HELLO, error: undefined })
    })

    test('an error is the status of the call, before the first message and after it', async () => {
      const failed = await stream('fail')
      expect([failed.texts, failed.error?.code]).toEqual([[], Status.INTERNAL])
      const late = await stream(LATE)
      expect([late.texts, late.error?.code]).toEqual([['hello ', 'to '], Status.INTERNAL])
      expect(late.error?.details).toContain('Prediction failed')
    })

    test('a call that is cancelled: what the handler still says is thrown away', () =>
      throwsAway(async () => {
        const duplex = mlserver.ModelStreamInfer()
        duplex.on('error', () => undefined)
        duplex.write(message(LONG))
        await new Promise((resolve) => duplex.once('data', resolve))
        duplex.cancel()
      }))
  })

  describe('ModelStreamInfer as Triton has it', () => {
    const stream = async (...texts: string[]) => {
      const duplex = triton.ModelStreamInfer()
      texts.forEach((text, i) => duplex.write(message(text, { id: `r${i}` })))
      duplex.end()
      const { messages, error } = await readAll(duplex)
      return {
        said: messages.map(({ error_message, infer_response }) =>
          error_message === '' ? words(infer_response as Message) : `error: ${String(error_message)}`,
        ),
        error,
      }
    }

    test('is a message for each frame', async () => {
      expect(await stream(HELLO.join(''))).toEqual({ said: HELLO, error: undefined })
    })

    test('an error is a message, and the call serves the next request', async () => {
      const { said: all, error } = await stream('fail', LATE, 'at last')
      expect(error).toBeUndefined()
      const failed = expect.stringMatching(/^error: .*Prediction failed/)
      expect(all).toEqual([failed, 'hello ', 'to ', failed, 'at ', 'last'])
    })

    test('a call that is cancelled: what the handler still says is thrown away', () =>
      throwsAway(async () => {
        const duplex = triton.ModelStreamInfer()
        duplex.on('error', () => undefined)
        duplex.write(message(LONG))
        await new Promise((resolve) => duplex.once('data', resolve))
        duplex.cancel()
      }))
  })

  describe('the OpenAI API', () => {
    const text = (event: unknown): unknown =>
      (event as { choices?: { text: string }[] }).choices?.[0]?.text ?? event

    test('completions: an event for each frame, the finish and [DONE]', async () => {
      const { headers, body } = await complete(HELLO.join(''))
      expect(headers['content-type']).toMatch(/^text\/event-stream/)
      const all = events(body)
      expect(all.map(text).filter((each) => each !== '')).toEqual([...HELLO, '[DONE]'])
      expect(all.at(-2)).toMatchObject({ model: 'words', choices: [{ finish_reason: 'stop' }] })
    })

    test('completions that do not stream are joined; chats are, too', async () => {
      const whole = await complete(HELLO.join(''), { stream: false })
      expect(JSON.parse(whole.body)).toMatchObject({ choices: [{ text: 'hello to you' }] })
      const chat = await post('/v1/chat/completions', {
        ...{ model: 'words', messages: [{ role: 'user', content: 'hello' }] },
      })
      const { choices } = JSON.parse(chat.body) as { choices: { message: { content: string } }[] }
      expect(choices[0]!.message.content).toContain('hello')
    })

    test('an error before the first event has its status, also of a stream', async () => {
      const failed = await complete('fail')
      expect([failed.status, JSON.parse(failed.body)]).toMatchObject([500, { error: {} }])
      const refused = await complete('refuse')
      expect([refused.status, JSON.parse(refused.body)]).toMatchObject([
        422,
        { error: { message: 'I do not say that' } },
      ])
    })

    test('an error after it is an event, and the usual end', async () => {
      const { status, body } = await complete(LATE)
      expect(status).toBe(200)
      const failed = { error: { message: 'Prediction failed' } }
      expect(events(body).map(text)).toMatchObject(['hello ', 'to ', failed, '[DONE]'])
    })

    test('a client that leaves: what the handler still says is thrown away', () =>
      throwsAway(async () => {
        const request = new RawRequest(server.ports.inference, '/v1/completions', {
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'words', prompt: LONG, stream: true }),
        })
        await request.gotChunks(2)
        request.destroy()
      }))
  })

  test('a worker that is killed ends streams of every dialect with an error', async () => {
    const wish = JSON.stringify({ name: 's', n: 1000, ms: 20 })
    const begin = (path: string, body: object) =>
      new RawRequest(server.ports.inference, path, {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const v2 = begin('/v2/models/side/infer_stream', tensor(wish))
    const openai = begin('/v1/completions', { model: 'side', prompt: wish, stream: true })
    const duplexes = [mlserver, triton].map((client) => {
      const duplex = client.ModelStreamInfer()
      duplex.write(message(wish, { model_name: 'side' }))
      return duplex
    })
    const [ended, endedTriton] = duplexes.map((duplex) => readAll(duplex))
    await Promise.all([
      ...[v2, openai].map((request) => request.gotChunks(1)),
      ...duplexes.map((duplex) => new Promise((resolve) => duplex.once('data', resolve))),
    ])
    process.kill((await server.worker('side')).pid, 'SIGKILL')
    duplexes[1]!.end()
    const died = expect.stringContaining('Worker died.')
    expect(events((await v2.done).body).at(-1)).toMatchObject({ error: died })
    expect(events((await openai.done).body).slice(-2)).toMatchObject([{ error: { message: died } }, '[DONE]'])
    expect((await ended!).error).toMatchObject({ details: died })
    expect((await endedTriton!).messages.at(-1)).toMatchObject({ error_message: died })
  })
})
