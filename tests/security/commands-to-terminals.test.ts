import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { printed } from '../../frontend/cli/output.ts'
import { Serve } from '../support/serve-command.ts'
import { CLI } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

/** Titles a window, clears the screen, goes back in the line, and begins commands in one byte. */
const HOSTILE = '\u001b]0;owned\u0007\u001b[2J\rforged\u009b31m\u0085end'
/** What a terminal obeys; line feeds are the command's own. */
const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/

function model(files: Record<string, string>): string {
  const folder = tempDir()
  mkdirSync(join(folder, 'MAR-INF'))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  return folder
}

test('what a command prints keeps its lines and tabs, and commands nothing', () => {
  expect(printed(`a\tb\n${HOSTILE}`)).toBe('a\tb\n\\x1b]0;owned\\x07\\x1b[2J\\x0dforged\\x9b31m\\x85end\n')
})

test('a handler that does not load: its message is shown as text', async () => {
  const code = `throw new Error(${JSON.stringify(HOSTILE)})`
  const served = new Serve([model({ 'handler.mjs': code })])
  expect(await served.status).toBe(1)
  expect(served.output).toContain('\\x1b]0;owned\\x07')
  expect(served.output).not.toMatch(OBEYED)
})

test('an archive under examination: the names that its manifest has are shown as text', async () => {
  const manifest = {
    runtime: 'node',
    model: { modelName: 'm', modelVersion: '1.0', handler: `${HOSTILE}.mjs`, serializedFile: HOSTILE },
  }
  const folder = model({ 'MAR-INF/MANIFEST.json': JSON.stringify(manifest) })
  const { stdout, stderr, exitCode } = await execa(process.execPath, [CLI, '--check-archive', folder], {
    reject: false,
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  expect(exitCode).toBe(2)
  expect(stdout + stderr).toContain('\\x1b]0;owned\\x07')
  expect(stdout + stderr).not.toMatch(OBEYED)
})

test('a worker that ends with a message: status shows it as text, and as JSON that is valid', async () => {
  const code = `export const handle = () => {
  process.stderr.write(${JSON.stringify(HOSTILE)} + '\\n')
  process.exit(3)
}`
  const served = new Serve([model({ 'handler.mjs': code }), '--name', 'm'])
  await served.wrote('is ready on')
  const [base] = /http:\/\/127\.0\.0\.1:\d+/.exec(served.output)!
  expect((await fetch(`${base}/predictions/m`, { method: 'POST', body: 'x' })).status).toBe(500)
  const json = await served.run('status', '--json')
  expect(JSON.stringify(JSON.parse(json))).toContain('\u0085end')
  expect(json).not.toMatch(OBEYED)
  expect(await served.run('status')).not.toMatch(OBEYED)
  expect(await served.stop()).toBe(0)
  expect(served.output).not.toMatch(OBEYED)
})
