import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { DevServer } from '../support/dev-server.ts'
import { RawRequest } from '../support/raw-http.ts'
import { REPOSITORY } from '../support/server.ts'
import { execa } from '../support/tools.ts'

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

test('the README shows the handler that is in the repository', () => {
  expect(blocks('ts')).toEqual([source('examples/my-first-handler/handler.ts')])
})

test('the test beside the handler passes', async () => {
  const run = ['tsx', '--test', 'examples/my-first-handler/handler.test.ts']
  const { stdout } = await execa('npx', run, { cwd: REPOSITORY, env: { ...process.env, NODE_OPTIONS: '' } })
  expect(stdout).toMatch(/tests 1$[^]*pass 1$/m)
})

test('the README’s commands serve the handler and stream from it', async () => {
  const [, cli, , folder] = commandWith('dist/frontend/cli.js dev')
  const server = new DevServer(folder!, REPOSITORY, cli)
  try {
    await server.said('each save is loaded')
    const curl = commandWith('curl -N').join(' ')
    const path = new URL(/http:\S+/.exec(curl)![0]).pathname
    const body = /-d '(.*?)'/.exec(curl)![1]!
    const request = new RawRequest(server.port, path, { headers: { 'content-type': 'text/plain' }, body })
    await request.gotChunks(1)
    expect(String(request.chunks[0])).toBe('one\n')
    const response = await request.done
    expect(response.chunks.map(String)).toEqual(['one\n', 'two\n', 'three\n'])
    expect(response.complete).toBe(true)
  } finally {
    expect(await server.stop()).toBe(0)
  }
})

test('the README has at most 120 lines', () => {
  expect(README.split('\n').length).toBeLessThan(120)
})

test('links of the README lead to something', () => {
  const links = [...README.matchAll(/\]\((?!http)([^)#]+)/g)].map((match) => match[1]!)
  expect(links.length).toBeGreaterThan(3)
  expect(links.filter((link) => !existsSync(join(REPOSITORY, link)))).toEqual([])
})
