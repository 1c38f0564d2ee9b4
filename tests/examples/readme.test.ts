import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { DevServer } from '../support/dev-server.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa, execFileSync } from '../support/tools.ts'

const README = readFileSync(join(REPOSITORY, 'README.md'), 'utf8')

/** The code blocks of a language, in their order. */
function blocks(language: string): string[] {
  return [...README.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(
    (match) => match[1]!,
  )
}

function source(path: string): string {
  return readFileSync(join(REPOSITORY, path), 'utf8')
}

/** The README's command line that has this in it, as arguments. */
function commandWith(text: string): string[] {
  const line = blocks('sh')
    .join('')
    .split('\n')
    .find((candidate) => candidate.includes(text))
  if (line === undefined) throw new Error(`The README has no command with ${text}`)
  return line.split(' ')
}

test('the README shows the handler and the test that are in the repository', () => {
  const [handler, itsTest] = blocks('ts')
  expect(handler).toBe(source('examples/my-first-handler/handler.ts'))
  expect(itsTest).toBe(source('examples/my-first-handler/handler.test.ts'))
})

test('the README’s command tests the handler', async () => {
  const [, ...run] = commandWith('tsx --test')
  const { stdout } = await execa('npx', run, { cwd: REPOSITORY, env: { ...process.env, NODE_OPTIONS: '' } })
  expect(stdout).toMatch(/tests 1$[^]*pass 1$/m)
})

test('the README’s commands pack the handler, serve it and stream from it', async () => {
  const store = tempDir()
  const [node, ...pack] = commandWith('dist/model-archiver/cli.js')
  expect(node).toBe('node')
  const at = pack.indexOf('--export-path') + 1
  execFileSync(process.execPath, pack.with(at, store), { cwd: REPOSITORY })

  const serve = commandWith('dist/frontend/cli.js --start')
  const archive = serve[serve.indexOf('--models') + 1]!
  const server = await startServer({ modelStore: store, models: [archive] })
  await server.ready('words')

  const curl = commandWith('curl -N').join(' ')
  const path = new URL(/http:\S+/.exec(curl)![0]).pathname
  const body = /-d '(.*?)'/.exec(curl)![1]!
  const request = new RawRequest(server.ports.inference, path, {
    headers: { 'content-type': 'text/plain' },
    body,
  })
  await request.gotChunks(1)
  expect(String(request.chunks[0])).toBe('one\n')
  const response = await request.done
  expect(response.chunks.map(String)).toEqual(['one\n', 'two\n', 'three\n'])
  expect(response.complete).toBe(true)
})

test('the README’s command serves the handler while it is written', async () => {
  const [, cli, , folder] = commandWith('dist/frontend/cli.js dev')
  const server = new DevServer(folder!, REPOSITORY, cli)
  try {
    await server.said('each save is loaded')
    const request = { headers: { 'content-type': 'text/plain' }, body: 'one two' }
    const { body } = await rawRequest(server.port, '/predictions/my-first-handler', request)
    expect(body).toBe('one\ntwo\n')
  } finally {
    expect(await server.stop()).toBe(0)
  }
})

test('links of the README lead to something', () => {
  const links = [...README.matchAll(/\]\((?!http)([^)#]+)/g)].map((match) => match[1]!)
  expect(links.length).toBeGreaterThan(3)
  expect(links.filter((link) => !existsSync(join(REPOSITORY, link)))).toEqual([])
})
