import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { processors } from '../../common/processors.ts'
import { rawRequest } from '../support/raw-http.ts'
import { CLI, REPOSITORY, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

const WORD = "export const handle = (requests: unknown[]): string[] => requests.map(() => 'a word')\n"

/** A model store with one folder, whose files have these contents. */
function storeOf(model: string, files: Record<string, string>): string {
  const store = tempDir()
  mkdirSync(join(store, model))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(store, model, name), text)
  return store
}

test("a folder's name that is no model name is served under another one, which the log says", async () => {
  const modelStore = storeOf('my first-handler', { 'handler.ts': WORD })
  const server = await startServer({ modelStore, models: ['my first-handler'] })
  const line = server.output.find((each) => each.includes('registered from the folder'))
  expect(line).toMatch(/from the folder my first-handler; its name in URLs is my_first_handler$/)
  const { status, body } = await rawRequest(server.ports.inference, '/predictions/my_first_handler')
  expect([status, body]).toEqual([200, 'a word'])
})

test('a folder with a hyphen and a dot in its name is served under this name', async () => {
  const modelStore = storeOf('my-first.v2', { 'handler.ts': WORD })
  const server = await startServer({ modelStore, models: ['my-first.v2'] })
  const { status, body } = await rawRequest(server.ports.inference, '/predictions/my-first.v2')
  expect([status, body]).toEqual([200, 'a word'])
})

const THROWS = `
interface Request { body?: unknown }

function deep(text: string): never {
  throw new Error(\`cannot say \${text}\`)
}

export const handle = (requests: Request[]): string[] => requests.map(({ body }) => deep(String(body)))
`

test("a handler's stack in the log points into its TypeScript, one frame a line", async () => {
  const modelStore = storeOf('throws', { 'handler.ts': THROWS })
  const server = await startServer({ modelStore, models: ['throws'] })
  await server.ready('throws')
  const { headers } = await rawRequest(server.ports.inference, '/predictions/throws', { body: 'it' })
  const lines = await server.until(
    () => {
      const at = server.output.findIndex((line) => line.includes(`${headers['x-request-id']} HANDLER_FAILED`))
      return Promise.resolve(at < 0 ? [] : server.output.slice(at, at + 3))
    },
    (found) => found.length === 3,
  )
  const handler = join(modelStore, 'throws', 'handler.ts')
  expect(lines[0]).toMatch(/: Error: cannot say it$/)
  expect(lines[1]).toBe(`    at deep (${handler}:5:9)`)
  expect(lines[2]).toContain(`(${handler}:8:85)`)
  expect(server.output.filter((line) => line.includes('backend-worker'))).toEqual([])
})

test('a folder with only a .gguf file is served by the built-in handler, in one process that leaves a core to the server', async () => {
  const modelStore = storeOf('novel', {})
  const weights = join(REPOSITORY, 'model-store', 'tiny-llama', 'model.gguf')
  cpSync(weights, join(modelStore, 'novel', 'novel.gguf'))
  const config = { default_workers_per_model: 3 }
  const server = await startServer({ modelStore, models: ['all'], config })
  await server.ready('novel')
  expect((await server.describe('novel'))[0]!.workers).toHaveLength(1)
  const [loaded] = await server.lines('Loaded novel.gguf')
  const threads = Number(/ (\d+) threads?, /.exec(loaded!)?.[1])
  expect(threads).toBeGreaterThanOrEqual(1)
  // Fewer where the machine has hyper-threads.
  expect(threads).toBeLessThanOrEqual(Math.max(1, processors() - 1))
  const { status, body } = await rawRequest(server.ports.inference, '/v1/completions', {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'novel', prompt: 'In the', max_tokens: 2 }),
  })
  expect([status, body.includes('"text"')]).toEqual([200, true])
})

test('a lone .gguf file is a model, which reads nothing else of its folder', async () => {
  const modelStore = storeOf('other', { 'handler.ts': WORD })
  cpSync(join(REPOSITORY, 'model-store', 'tiny-llama', 'model.gguf'), join(modelStore, 'novel.gguf'))
  const server = await startServer({ modelStore, models: ['novel.gguf'] })
  await server.ready('novel')
  const { status, body } = await rawRequest(server.ports.inference, '/predictions/novel', { body: 'In the' })
  expect([status, body.length > 0]).toEqual([200, true])
  const { modelUrl, archiveSha256 } = (await server.describe('novel'))[0]!
  expect([modelUrl, archiveSha256]).toEqual(['novel.gguf', undefined])
})

test('a store without models is told', async () => {
  const modelStore = storeOf('nothing', { 'README.md': '' })
  const server = await startServer({ modelStore, models: ['all'] })
  expect(server.output.find((line) => line.includes('No models in '))).toContain(
    `No models in ${modelStore}: `,
  )
})

test('a package that a handler lacks is named with the command that installs it', async () => {
  const source = `import 'lacking-a'\nimport { x } from '@lacking/b/part'\nimport 'node:fs'\nexport const handle = () => x\n`
  const modelStore = storeOf('lacks', { 'handler.ts': source })
  const { exitCode, stdout } = await execa(
    process.execPath,
    [CLI, '--check-archive', join(modelStore, 'lacks')],
    {
      cwd: tempDir(),
      reject: false,
    },
  )
  expect([exitCode, stdout]).toEqual([
    1,
    expect.stringContaining(
      'The handler imports @lacking/b, lacking-a. Where torchserve-ts is installed: npm install @lacking/b lacking-a',
    ),
  ])
  const server = await startServer({ modelStore, models: ['lacks'] })
  const [failed] = await server.lines('Load failed')
  expect(failed).toMatch(
    /: The packages @lacking\/b and lacking-a are not installed\. Install them where torchserve-ts is installed: npm install @lacking\/b lacking-a$/,
  )
})
