/** What applications in TypeScript put on top of OpenAI's API: Vercel's AI SDK, and LangChain. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { ENVIRONMENT, REST_URL } = process.env
const { resolve } = createRequire(join(ENVIRONMENT, 'package.json'))
const load = async (name) => await import(pathToFileURL(resolve(name)).href)
const { embedMany, generateObject, generateText, stepCountIs, streamObject, streamText, tool } =
  await load('ai')
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible')
const { ChatOpenAI, OpenAIEmbeddings } = await load('@langchain/openai')
const { z } = await load('zod')

const TEXT = 'one two three four five six'
const LIMIT_MS = 30_000
const baseURL = `${REST_URL}/v1`
const provider = createOpenAICompatible({
  name: 'server',
  baseURL,
  includeUsage: true,
  supportsStructuredOutputs: true,
})
const small = { model: provider('tiny-llama'), maxOutputTokens: 40, maxRetries: 0, temperature: 0 }
const langchain = (model, more = {}) =>
  new ChatOpenAI({ model, apiKey: 'none', configuration: { baseURL }, maxRetries: 0, ...more })
const schema = z.object({ city: z.enum(['Paris', 'Rome']) })

async function check(name, body) {
  const abort = AbortSignal.timeout(LIMIT_MS)
  const late = new Promise((_, reject) => abort.addEventListener('abort', () => reject(abort.reason)))
  try {
    await Promise.race([body(), late])
    console.log(`ok frameworks: ${name}`)
  } catch (error) {
    console.log(`FAILED frameworks: ${name}`)
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    for (const line of text.split('\n').slice(0, 8)) console.log(`    ${line.slice(0, 400)}`)
  }
}

async function all(stream) {
  const parts = []
  for await (const part of stream) parts.push(part)
  return parts
}

await check('AI SDK: a whole text, and a stream that says the same with usage', async () => {
  const whole = await generateText({ ...small, prompt: 'In the beginning' })
  const stream = streamText({ ...small, prompt: 'In the beginning' })
  assert.equal((await all(stream.textStream)).join(''), whole.text)
  const { inputTokens, outputTokens } = await stream.usage
  assert.deepEqual([inputTokens, outputTokens], [whole.usage.inputTokens, whole.usage.outputTokens])
})

await check('AI SDK: words arrive one by one, and an abort ends the stream', async () => {
  const model = provider('chat')
  assert.deepEqual(await all(streamText({ model, prompt: TEXT }).textStream), TEXT.split(/(?<= )/))
  const abort = new AbortController()
  const stream = streamText({ model, prompt: 'word '.repeat(10_000), abortSignal: abort.signal })
  let seen = 0
  for await (const _ of stream.textStream) {
    seen += 1
    if (seen === 3) abort.abort()
  }
  assert.ok(seen < 10_000, `${seen} words`)
})

await check('AI SDK: an error in the middle of a stream is told', async () => {
  const errors = []
  const onError = ({ error }) => errors.push(error)
  const stream = streamText({ model: provider('chat'), prompt: 'one two boom', onError, maxRetries: 0 })
  const parts = await all(stream.fullStream)
  assert.deepEqual(
    parts.filter(({ type }) => type === 'text-delta').map(({ text }) => text),
    ['one ', 'two '],
  )
  assert.match(JSON.stringify(errors.map((error) => error.message ?? error)), /boom/)
})

await check('AI SDK: objects of a schema, whole and as a stream', async () => {
  const { object } = await generateObject({ ...small, schema, prompt: 'Where?' })
  assert.ok(['Paris', 'Rome'].includes(object.city))
  const partial = await all(streamObject({ ...small, schema, prompt: 'Where?' }).partialObjectStream)
  assert.deepEqual(partial.at(-1), object)
})

await check('AI SDK: a tool is called, and its result goes back to the model', async () => {
  const execute = ({ city }) => ({ city, degrees: 21 })
  const weather = tool({ description: 'the weather of a city', inputSchema: schema, execute })
  const { steps } = await generateText({
    ...small,
    tools: { weather },
    prompt: 'The weather?',
    stopWhen: stepCountIs(2),
    prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? 'required' : 'none' }),
  })
  const [first, second] = steps
  assert.equal(first.toolResults[0].output.degrees, 21)
  assert.equal(first.finishReason, 'tool-calls')
  assert.deepEqual(second.toolCalls, [])
})

await check('AI SDK: embeddings', async () => {
  const model = provider.textEmbeddingModel('tiny-llama')
  const { embeddings } = await embedMany({ model, values: ['a cat', 'a dog'] })
  assert.equal(embeddings.length, 2)
  assert.notDeepEqual(embeddings[0], embeddings[1])
})

await check('LangChain: a text, a stream, and several texts at once', async () => {
  const chat = langchain('chat')
  assert.equal((await chat.invoke(TEXT)).content, TEXT)
  assert.equal((await all(await chat.stream(TEXT))).map(({ content }) => content).join(''), TEXT)
  const texts = ['one', 'two', 'three']
  assert.deepEqual(
    (await chat.batch(texts)).map(({ content }) => content),
    texts,
  )
})

await check('LangChain: structured output, and a tool that must be called', async () => {
  const model = langchain('tiny-llama', { maxTokens: 40, temperature: 0 })
  const { city } = await model.withStructuredOutput(schema).invoke('Where?')
  assert.ok(['Paris', 'Rome'].includes(city))
  const parameters = { type: 'object', properties: { city: { enum: ['Paris'] } }, required: ['city'] }
  const weather = { type: 'function', function: { name: 'weather', parameters } }
  const { tool_calls } = await model.bindTools([weather], { tool_choice: 'any' }).invoke('The weather?')
  assert.deepEqual([tool_calls[0].name, tool_calls[0].args], ['weather', { city: 'Paris' }])
})

await check('LangChain: embeddings', async () => {
  const embeddings = new OpenAIEmbeddings({ model: 'tiny-llama', apiKey: 'none', configuration: { baseURL } })
  const [a, b] = await embeddings.embedDocuments(['a cat', 'a dog'])
  assert.equal(a.length, b.length)
  assert.ok(a.some((value) => value !== 0))
})

console.log('DONE')
