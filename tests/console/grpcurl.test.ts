import { chmodSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import { expectAccessible, openPage, picture } from '../support/browser.ts'
import { COUNT, ECHO } from '../support/count.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { CERT_FILE, KEY_FILE } from '../support/tls/files.ts'
import { execa } from '../support/tools.ts'

/**
 * "Copy as grpcurl" of the playground: what a shell makes of it gets the answer that REST gives. GRPCURL
 * names the program; without it tests/support/grpcurl.ts reads the same flags.
 */

/** Answers with its inputs, and in a stream with the words of the first one. */
const TENSORS = `tensors=${join(REPOSITORY, 'tests', 'support', 'handlers', 'tensors')}`
/** What a shell, JSON and base64 may trip over. */
const ODD = `it's "quoted" $HOME \`id\` \\n !x ünï \u{1f600}\n'; exit 7; '`
let server: Server
let page: Page
let faults: string[]

beforeAll(async () => {
  server = await startServer({
    models: [COUNT, ECHO, TENSORS],
    config: { open_inference_grpc_port: 0 },
  })
  for (const model of ['count', 'echo', 'tensors']) await server.ready(model)
})

afterEach(async () => {
  await page.close()
  expect(faults).toEqual([])
})

async function open(on = server): Promise<void> {
  ;({ page, faults } = await openPage(`http://127.0.0.1:${on.ports.management}/console#playground`))
  await page.getByText('Copy as').click()
}

async function choose(model: string, api?: string): Promise<void> {
  await page.getByLabel('Model').selectOption({ label: model })
  if (api !== undefined) await page.getByLabel('API', { exact: true }).selectOption({ label: api })
}

/** The command for a body; undefined: what the playground has. */
async function command(body?: string): Promise<string> {
  if (body !== undefined) await page.getByLabel('Body').fill(body)
  await page.getByLabel('Language').selectOption('grpcurl')
  return (await page.locator('.program').textContent())!
}

/** Runs it in a shell; the messages of its answer. */
async function run(
  line: string,
  cwd = tempDir(),
  variables: NodeJS.ProcessEnv = {},
): Promise<Record<string, unknown>[]> {
  const bin = tempDir()
  const program = join(bin, 'grpcurl')
  const real = process.env['GRPCURL']
  if (real !== undefined) symlinkSync(real, program)
  else {
    const tsx = join(REPOSITORY, 'node_modules', '.bin', 'tsx')
    const standIn = join(REPOSITORY, 'tests', 'support', 'grpcurl.ts')
    writeFileSync(program, `#!/bin/sh\nexec '${tsx}' '${standIn}' "$@"\n`)
    chmodSync(program, 0o755)
  }
  const env = { ...variables, PATH: `${bin}${delimiter}${process.env['PATH']!}` }
  const { stdout } = await execa('sh', ['-c', line], { cwd, env })
  return stdout.split(/^(?=\{)/m).map((each) => JSON.parse(each) as Record<string, unknown>)
}

function joined(answers: Record<string, unknown>[]): string {
  return Buffer.concat(answers.map(({ prediction }) => Buffer.from(String(prediction), 'base64'))).toString()
}

test('a text arrives as it was written, over the stream of TorchServe', async () => {
  await open()
  await choose('echo')
  const line = await command(ODD)
  expect(line).toMatch(/^grpcurl -plaintext -d '/)
  expect(line).toContain(`'127.0.0.1:${server.ports.grpcInference}'`)
  expect(joined(await run(line))).toBe(ODD)
  await expectAccessible(page)
  await picture(page, 'grpcurl')
  await choose('count')
  const pieces = await run(await command(JSON.stringify({ n: 3, size: 4 })))
  expect(pieces.length).toBeGreaterThan(2)
})

test('a file arrives as it is, whatever it is called', async () => {
  await open()
  await choose('echo')
  const folder = tempDir()
  const name = `it's a $file.bin`
  writeFileSync(join(folder, name), ODD)
  await page.getByLabel('File instead').setInputFiles(join(folder, name))
  expect(joined(await run(await command(), folder))).toBe(ODD)
})

test('with TLS and tokens the command has both, and the token stays a variable', async () => {
  const guarded = await startServer({
    models: [ECHO],
    flags: ['--enable-model-api'],
    config: { enable_grpc_ssl: true, certificate_file: CERT_FILE, private_key_file: KEY_FILE },
  })
  const { management, inference } = keysOf(guarded)
  ;({ page, faults } = await openPage(`http://127.0.0.1:${guarded.ports.management}/console#playground`))
  await page.getByLabel('Token').fill(management)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Copy as').click()
  const line = await command(ODD)
  expect(line).toMatch(/^grpcurl -H "authorization: Bearer \$TOKEN" -d '/)
  // Go reads the first, grpc-js the second.
  const roots = { SSL_CERT_FILE: CERT_FILE, GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: CERT_FILE }
  const variables = { ...roots, TOKEN: inference }
  expect(joined(await run(line, tempDir(), variables))).toBe(ODD)
  await expect(run(line, tempDir(), { ...variables, TOKEN: management })).rejects.toThrow(/Token Auth/)
})

function keysOf({ folder }: Server): Record<'management' | 'inference', string> {
  const file = readFileSync(join(folder, 'key_file.json'), 'utf8')
  const keys = JSON.parse(file) as Record<'management' | 'inference', { key: string }>
  return { management: keys.management.key, inference: keys.inference.key }
}

/** Every datatype that has a JSON over gRPC. */
const INPUTS = [
  { name: 'b', datatype: 'BOOL', shape: [2], data: [true, false] },
  { name: 'i8', datatype: 'INT8', shape: [2], data: [-1, 7] },
  { name: 'i64', datatype: 'INT64', shape: [2], data: ['9007199254740993', -5] },
  { name: 'u16', datatype: 'UINT16', shape: [1], data: [65_535] },
  { name: 'u64', datatype: 'UINT64', shape: [1], data: ['18446744073709551615'] },
  {
    name: 'f32',
    datatype: 'FP32',
    shape: [2, 2],
    data: [
      [1.5, -2],
      [0.25, 4],
    ],
  },
  { name: 'f64', datatype: 'FP64', shape: [1], data: [0.1] },
  { name: ODD, datatype: 'BYTES', shape: [2], data: [ODD, ''], parameters: { content_type: 'str' } },
]

interface Output {
  name: string
  datatype: string
  shape: string[]
  contents: Record<string, unknown[]>
}

function elementsOf({ datatype, contents }: Output): string[] {
  const [elements] = Object.values(contents)
  const isText = datatype === 'BYTES'
  return elements!.map((each) => (isText ? Buffer.from(String(each), 'base64').toString() : String(each)))
}

test('tensors of every datatype arrive as they were written', async () => {
  await open()
  await choose('tensors', 'Open Inference: infer')
  const parameters = { text: ODD, flag: false, whole: -3, half: 0.5, list: [1, 'a'] }
  const body = JSON.stringify({ id: 'one', inputs: INPUTS, parameters })
  const [answer] = await run(await command(body))
  // grpcurl names fields as the .proto file does.
  expect([answer!['id'], answer!['model_name'] ?? answer!['modelName']]).toEqual(['one', 'tensors'])
  const outputs = answer!['outputs'] as Output[]
  expect(outputs.map((each) => [each.name, each.datatype, each.shape, elementsOf(each)])).toEqual(
    INPUTS.map(({ name, datatype, shape, data }) => [
      name,
      datatype,
      shape.map(String),
      data.flat().map(String),
    ]),
  )
})

test('text for generate_stream becomes the input text_input', async () => {
  await open()
  await choose('tensors', 'Open Inference: generate_stream')
  const line = await command(JSON.stringify({ text_input: ODD, parameters: { temperature: 0.5 }, seed: 7 }))
  expect(line).toContain("'inference.GRPCInferenceService/ModelStreamInfer'")
  const answers = await run(line)
  const words = answers.map(({ outputs }) => elementsOf((outputs as [Output])[0]).join(''))
  expect(words.length).toBeGreaterThan(3)
  expect(words.join('')).toBe(ODD)
})

test.each([
  ['{', 'The body must be a JSON object.'],
  [{}, 'The body must have a list of inputs.'],
  [
    { inputs: [{ name: 'x', datatype: 'FP16', shape: [1], data: [1] }] },
    'An input has a datatype that the JSON of gRPC cannot say.',
  ],
  [
    { inputs: [{ name: 'x', datatype: 'INT64', shape: [1], data: [2 ** 60] }] },
    'Integers must be whole, and texts beyond 9007199254740991.',
  ],
  [
    { inputs: [{ name: '\nid #', datatype: 'BYTES', shape: [1], data: [1] }] },
    'BYTES elements must be strings.',
  ],
])('a body that cannot be sent is a comment that says why: %j', async (body, why) => {
  await open()
  await choose('tensors', 'Open Inference: infer')
  expect(await command(typeof body === 'string' ? body : JSON.stringify(body))).toBe(`# ${why}`)
})

test('an API without gRPC, or whose port is closed, has no such command', async () => {
  const plain = await startServer({ models: [ECHO] })
  await plain.ready('echo')
  await open(plain)
  const languages = (): Promise<string[]> => page.getByLabel('Language').locator('option').allTextContents()
  await page.getByLabel('Language').selectOption('grpcurl')
  await choose('echo', 'OpenAI: completions')
  expect(await languages()).toEqual(['curl', 'TypeScript', 'Python'])
  await page.locator('.program').getByText('curl -N').waitFor()
  await choose('echo', 'Open Inference: infer')
  expect(await languages()).toEqual(['curl', 'TypeScript', 'Python'])
  await choose('echo', 'TorchServe predictions')
  expect(await languages()).toEqual(['curl', 'TypeScript', 'Python', 'grpcurl'])
})
