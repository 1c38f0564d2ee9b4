/**
 * Shows that any GGUF works in the handler of tiny-llama: streams from Gemma 3 270M over both protocols and
 * compares with the library, then runs eight completions and eight chats of the OpenAI API at once.
 * `npm run test:gemma`; not part of `npm test`, because it downloads 253 MB. Ends with `N passed, N failed`.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { streamOverHttp } from '../../examples/demo/chunked-http.ts'
import { DemoServer } from '../../examples/demo/server.ts'
import { streamOverGrpc } from '../../examples/demo/stream-predictions.ts'
import type { Timing } from '../../examples/demo/timing.ts'
import { completeDirectly } from './direct.ts'
import { fetchGemma } from './fetch-gguf.ts'
import { makeModelFolder } from './model-folder.ts'
import { completionsApart } from './apart.ts'
import { chatsTogether } from './together.ts'

const MODEL = 'gemma'
const MAX_TOKENS = 40
const REQUEST = { prompt: 'The capital of France is', max_tokens: MAX_TOKENS, temperature: 0 }
const TIME_LIMIT_MS = 600_000

type Stream = (onText: (text: string) => void) => Promise<Timing>

let passed = 0
let failed = 0

async function check(name: string, body: () => Promise<void>): Promise<void> {
  try {
    await body()
    passed += 1
    console.log(`ok      ${name}`)
  } catch (error) {
    failed += 1
    console.log(`FAILED  ${name}\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  }
}

async function streams(stream: Stream, unit: string, expected: string): Promise<void> {
  let text = ''
  const timing = await stream((chunk) => {
    text += chunk
  })
  console.log(`        ${timing.line('gemma', unit)}`)
  assert.equal(text, expected)
  assert.ok(timing.parts >= MAX_TOKENS / 2, `only ${timing.parts} ${unit}`)
  assert.ok(timing.firstMs < timing.totalMs / 2, 'the first part came late')
}

async function main(folder: string, signal: AbortSignal): Promise<void> {
  console.log('Fetching the weights ...')
  const gguf = await fetchGemma(folder)
  const expected = await completeDirectly(gguf, REQUEST.prompt, MAX_TOKENS)
  console.log(`The library says: ${JSON.stringify(expected)}`)
  const store = join(folder, 'store')
  await makeModelFolder(store, gguf)
  const server = await DemoServer.start({ modelStore: store, models: [MODEL], signal })
  try {
    await server.modelReady(MODEL, signal)
    const url = `http://127.0.0.1:${server.inferencePort}`
    const http = { port: server.inferencePort, path: `/predictions/${MODEL}`, body: REQUEST }
    const overHttp: Stream = (onText) => streamOverHttp(http, onText, signal)
    const overGrpc: Stream = (onText) => streamOverGrpc(server.grpcPort, MODEL, REQUEST, onText, signal)
    await check('chunked HTTP streams what the library says', () => streams(overHttp, 'chunks', expected))
    await check('StreamPredictions streams what the library says', () =>
      streams(overGrpc, 'messages', expected),
    )
    await check('eight completions together say what each says alone', () =>
      completionsApart(url, MODEL, signal),
    )
    await check('eight chats progress together, and four of them faster', () =>
      chatsTogether({ url, model: MODEL, signal }),
    )
  } finally {
    await server.stop()
  }
}

const folder = await mkdtemp(join(tmpdir(), 'torchserve-ts-gemma-'))
try {
  await check('gemma runs in the server', () => main(folder, AbortSignal.timeout(TIME_LIMIT_MS)))
} finally {
  await rm(folder, { recursive: true, force: true })
}
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
