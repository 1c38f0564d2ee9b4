/** promptfoo: an evaluation with assertions on texts, a schema, and tool calls. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const { ENVIRONMENT, REST_URL } = process.env
const run = promisify(execFile)
const COMMAND = join(ENVIRONMENT, 'node_modules', '.bin', 'promptfoo')
const FLAGS = ['--no-cache', '--no-write', '--no-table', '--no-progress-bar']
const LIMIT_MS = 60_000
/** Its status when an assertion fails. */
const FAILED_STATUS = 100
const parameters = {
  type: 'object',
  properties: { city: { enum: ['Paris', 'Rome'] }, guest: { anyOf: [{ enum: ['Ann'] }, { type: 'null' }] } },
  required: ['city', 'guest'],
  additionalProperties: false,
}
const weather = { type: 'function', function: { name: 'weather', parameters } }

const provider = (model, more = {}) => ({
  id: `openai:chat:${model}`,
  config: { apiBaseUrl: `${REST_URL}/v1`, apiKey: 'none', temperature: 0, max_tokens: 60, ...more },
})

/** What it reports of one question, and its exit status. */
async function evaluate(of, text, assertion) {
  const folder = await mkdtemp(join(tmpdir(), 'promptfoo-'))
  try {
    const [file, output] = [join(folder, 'config.json'), join(folder, 'output.json')]
    const tests = [{ vars: { text }, assert: [assertion] }]
    await writeFile(file, JSON.stringify({ prompts: ['{{text}}'], providers: [of], tests }))
    const env = { ...process.env, PROMPTFOO_CONFIG_DIR: folder }
    const command = run(COMMAND, ['eval', ...FLAGS, '-c', file, '-o', output], { env, timeout: LIMIT_MS })
    const status = await command.then(
      () => 0,
      (error) => error.code,
    )
    const { results } = JSON.parse(await readFile(output, 'utf8'))
    return { status, result: results.results[0] }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function passes(...asked) {
  const { status, result } = await evaluate(...asked)
  assert.equal(status, 0, JSON.stringify(result.error ?? result.gradingResult))
  assert.equal(result.success, true)
  return result
}

async function check(name, body) {
  try {
    await body()
    console.log(`ok promptfoo: ${name}`)
  } catch (error) {
    console.log(`FAILED promptfoo: ${name}`)
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    for (const line of text.split('\n').slice(0, 8)) console.log(`    ${line.slice(0, 400)}`)
  }
}

await check('a whole text, as it was asked for', async () => {
  await passes(provider('chat'), 'one two three', { type: 'equals', value: 'one two three' })
})

await check('another text fails the evaluation', async () => {
  const { status, result } = await evaluate(provider('chat'), 'one two', { type: 'equals', value: 'three' })
  assert.deepEqual([status, result.success, result.response.output], [FAILED_STATUS, false, 'one two'])
})

await check('tokens are counted', async () => {
  const asked = [
    provider('tiny-llama', { max_tokens: 8 }),
    'In the beginning',
    { type: 'regex', value: '\\w' },
  ]
  const { tokenUsage } = (await passes(...asked)).response
  assert.ok(tokenUsage.prompt > 0 && tokenUsage.completion > 0 && tokenUsage.completion <= 8)
})

await check('an object of a schema with a union', async () => {
  const response_format = {
    type: 'json_schema',
    json_schema: { name: 'visit', strict: true, schema: parameters },
  }
  await passes(provider('tiny-llama', { response_format }), 'Where?', { type: 'is-json', value: parameters })
})

await check('a tool that must be called', async () => {
  const tools = { tools: [weather], tool_choice: 'required' }
  await passes(provider('tiny-llama', tools), 'The weather?', { type: 'is-valid-openai-tools-call' })
})

console.log('DONE')
