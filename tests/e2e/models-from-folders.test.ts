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
