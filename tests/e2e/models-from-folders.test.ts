import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { rawRequest } from '../support/raw-http.ts'
import { startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const WORD = "export const handle = (requests: unknown[]): string[] => requests.map(() => 'a word')\n"

/** A model store with one folder, whose files have these contents. */
function storeOf(model: string, files: Record<string, string>): string {
  const store = tempDir()
  mkdirSync(join(store, model))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(store, model, name), text)
  return store
}

test("a folder's name that is no model name is served under another one, which the log says", async () => {
  const modelStore = storeOf('my-first-handler', { 'handler.ts': WORD })
  const server = await startServer({ modelStore, models: ['my-first-handler'] })
  const line = server.output.find((each) => each.includes('registered from the folder'))
  expect(line).toMatch(/from the folder my-first-handler; its name in URLs is my_first_handler$/)
  const { status, body } = await rawRequest(server.ports.inference, '/predictions/my_first_handler')
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
