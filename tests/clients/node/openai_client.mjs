/** The official OpenAI client for Node. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { ENVIRONMENT, REST_URL } = process.env
const found = createRequire(join(ENVIRONMENT, 'package.json')).resolve('openai')
const { default: OpenAI } = await import(pathToFileURL(found).href)
const client = new OpenAI({ baseURL: `${REST_URL}/v1`, apiKey: 'none', maxRetries: 0, timeout: 60_000 })
const TEXT = 'one two three four five six'
const LIMIT_MS = 30_000
const said = (content) => [{ role: 'user', content }]
const hello = said('In the beginning')

async function check(name, body) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${LIMIT_MS} ms`)), LIMIT_MS)
  })
  try {
    await Promise.race([body(), late])
    console.log(`ok openai-node: ${name}`)
  } catch (error) {
    console.log(`FAILED openai-node: ${name}`)
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    for (const line of text.split('\n').slice(0, 8)) console.log(`    ${line.slice(0, 400)}`)
  } finally {
    clearTimeout(timer)
  }
}

async function all(stream) {
  const chunks = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}

const textOf = (chunks) => chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')

/** How the run of a user ended, from the model `chat`. */
async function stateOf(user) {
  const { choices } = await client.completions.create({ model: 'chat', prompt: user })
  return choices[0].text
}

async function stops(user, left) {
  for (const deadline = Date.now() + 5_000; Date.now() < deadline;) {
    const [word, at] = (await stateOf(user)).split(' ')
    if (word !== 'running') {
      assert.equal(word, 'cancelled')
      assert.ok(
        Number(at) - left <= 1_000,
        `the handler was told ${Number(at) - left} ms after the client left`,
      )
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error('still running 5 s after the client left')
}

await check('the list of models', async () => {
  const ids = (await all(client.models.list())).map(({ id }) => id)
  assert.ok(ids.includes('chat') && ids.includes('tiny-llama'), ids.join())
})

await check('a whole chat completion, and a stream that says the same with usage', async () => {
  const asked = { model: 'tiny-llama', messages: hello, max_tokens: 12, temperature: 0 }
  const whole = await client.chat.completions.create(asked)
  const options = { stream: true, stream_options: { include_usage: true } }
  const chunks = await all(await client.chat.completions.create({ ...asked, ...options }))
  assert.equal(textOf(chunks), whole.choices[0].message.content)
  assert.deepEqual(chunks.at(-1).usage, whole.usage)
  assert.deepEqual(chunks.at(-1).choices, [])
})

await check('the stream helper puts a whole chat completion together', async () => {
  const stream = client.chat.completions.stream({ model: 'chat', messages: said(TEXT) })
  const final = await stream.finalChatCompletion()
  assert.equal(final.choices[0].message.content, TEXT)
  assert.equal(final.choices[0].finish_reason, 'stop')
})

await check('chunks arrive one by one', async () => {
  const asked = { model: 'chat', messages: said(TEXT), stream: true, pause: 60 }
  const times = []
  for await (const chunk of await client.chat.completions.create(asked)) {
    if (chunk.choices[0]?.delta.content) times.push(Date.now())
  }
  assert.equal(times.length, 6)
  assert.ok(times.at(-1) - times[0] > 150, `all within ${times.at(-1) - times[0]} ms`)
})

await check('completions, whole and as a stream', async () => {
  const asked = { model: 'tiny-llama', prompt: 'In the beginning', max_tokens: 8, temperature: 0 }
  const whole = await client.completions.create(asked)
  const chunks = await all(await client.completions.create({ ...asked, stream: true }))
  assert.equal(chunks.map(({ choices }) => choices[0]?.text ?? '').join(''), whole.choices[0].text)
  assert.notEqual(whole.choices[0].text, '')
})

await check('embeddings: base64, which the client asks for by itself, and floats are the same', async () => {
  const asked = { model: 'tiny-llama', input: 'In the beginning' }
  const [a] = (await client.embeddings.create(asked)).data
  const [b] = (await client.embeddings.create({ ...asked, encoding_format: 'float' })).data
  assert.equal(a.embedding.length, b.embedding.length)
  assert.ok(a.embedding.every((value, index) => Math.abs(value - b.embedding[index]) < 1e-5))
})

await check('errors before the first chunk: NotFoundError, BadRequestError, also for a stream', async () => {
  for (const stream of [false, true]) {
    const unknown = client.chat.completions.create({ model: 'nobody', messages: hello, stream })
    await assert.rejects(
      unknown,
      (error) => error instanceof OpenAI.NotFoundError && error.code === 'model_not_found',
    )
    const bad = client.chat.completions.create({ model: 'chat', messages: 'no list', stream })
    await assert.rejects(bad, OpenAI.BadRequestError)
  }
})

await check('an error after the first chunk is thrown', async () => {
  const got = []
  const read = async () => {
    const asked = { model: 'chat', messages: said('one two boom'), stream: true }
    for await (const chunk of await client.chat.completions.create(asked)) {
      if (chunk.choices[0]?.delta.content) got.push(chunk.choices[0].delta.content)
    }
  }
  await assert.rejects(read, (error) => error instanceof OpenAI.APIError && error.message.includes('boom'))
  assert.deepEqual(got, ['one ', 'two '])
})

await check('aborting a chat stream stops the handler within a second', async () => {
  const asked = {
    model: 'chat',
    messages: said('word '.repeat(500)),
    stream: true,
    user: 'js-stream',
    pause: 20,
  }
  const stream = await client.chat.completions.create(asked)
  let left = 0
  let seen = 0
  for await (const _ of stream) {
    seen += 1
    if (seen === 4) break
  }
  left = Date.now()
  stream.controller.abort()
  await stops('js-stream', left)
})

await check('aborting a request for a whole answer stops the handler within a second', async () => {
  const asked = { model: 'chat', messages: said('word '.repeat(500)), user: 'js-unary', pause: 20 }
  const abort = new AbortController()
  const waiting = assert.rejects(client.chat.completions.create(asked, { signal: abort.signal }))
  while (!(await stateOf('js-unary')).startsWith('running'))
    await new Promise((resolve) => setTimeout(resolve, 10))
  const left = Date.now()
  abort.abort()
  await waiting
  await stops('js-unary', left)
})

await check('eight chat streams of one model progress together', async () => {
  const one = async () => {
    const times = []
    const asked = { model: 'chat', messages: said(TEXT), stream: true, pause: 60 }
    for await (const chunk of await client.chat.completions.create(asked)) {
      if (chunk.choices[0]?.delta.content) times.push(Date.now())
    }
    return times
  }
  const times = await Promise.all(Array.from({ length: 8 }, one))
  assert.ok(times.every(({ length }) => length === 6))
  assert.ok(
    Math.max(...times.map((each) => each[0])) < Math.min(...times.map((each) => each.at(-1))),
    'not together',
  )
})

console.log('DONE')
