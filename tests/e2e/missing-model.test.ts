import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { CLI } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

test('a start with a model that is not there names the store that was searched, in one line', async () => {
  const folder = tempDir()
  const store = join(folder, 'store')
  mkdirSync(store)
  const flags = ['--start', '--foreground', '--ncs', '--disable-token-auth', '--model-store', store]
  const env = { NODE_OPTIONS: '', TEMP: folder }
  const { exitCode, stderr } = await execa(process.execPath, [CLI, ...flags, '--models', 'gone.mar'], {
    cwd: folder,
    env,
    reject: false,
  })
  expect([exitCode, stderr.split('\n')]).toEqual([
    1,
    [
      `torchserve-ts: Failed to load model: gone.mar: Model not found at: gone.mar, searched in the model store ${store}`,
    ],
  ])
})
