import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { Hub, sha256 } from '../support/hub.ts'
import { CLI, REPOSITORY } from '../support/server.ts'
import { Serve } from '../support/serve-command.ts'
import { tempDir } from '../support/temp.ts'
import { CERT, CERT_FILE, KEY } from '../support/tls/files.ts'
import { execa } from '../support/tools.ts'

const WEIGHTS = readFileSync(join(REPOSITORY, 'model-store', 'tiny-llama', 'model.gguf'))

test('a model of the hub is one command away, and the lines that it prints work on every API', async () => {
  const hub = await Hub.start()
  hub.token = 'hf_token'
  hub.add('org/tiny-GGUF', { 'README.md': 'x', 'tiny-Q8_0.gguf': WEIGHTS, 'tiny-F16.gguf': 'other' })
  const env = { HF_ENDPOINT: hub.endpoint, HF_TOKEN: 'hf_token' }
  const served = new Serve(['org/tiny-GGUF:Q8_0'], { env })
  await served.wrote('OpenAI:')
  expect(served.output).toContain('Downloading tiny-Q8_0.gguf (')
  expect(served.output).toContain('; its SHA-256 is right\n')
  expect(served.output).toMatch(
    /^tiny-Q8_0 \(version 1\.0, tiny-Q8_0\.gguf\) is ready on http:\/\/127\.0\.0\.1:\d+\./m,
  )
  await served.wrote('The console is at ')
  const [, console] = /^The console is at (\S+)$/m.exec(served.output)!
  expect((await fetch(console!)).status).toBe(200)
  const answers = await served.curls()
  expect([...answers.keys()]).toEqual(['TorchServe', 'Open Inference', 'OpenAI'])
  expect(answers.get('TorchServe')!.length).toBeGreaterThan(0)
  expect(JSON.parse(answers.get('Open Inference')!)).toMatchObject({ model_name: 'tiny-Q8_0' })
  expect(answers.get('OpenAI')).toMatch(/^data: .*chat\.completion\.chunk[\s\S]*data: \[DONE\]/)

  const [server] = JSON.parse(await served.run('status', '--json')) as [{ models: { workers: unknown[] }[] }]
  expect(server.models.map(({ workers }) => workers.length)).toEqual([1])
  expect(await served.stop()).toBe(0)
  expect(served.output).toMatch(/\nStopping\n$/)
  expect(readdirSync(served.folder).sort()).toEqual(['cache', 'tmp'])
  expect(readdirSync(join(served.folder, 'tmp'))).toEqual(['models'])

  // Again: nothing is downloaded; and without the hub it serves what is there.
  const before = hub.asked.length
  const again = new Serve(['org/tiny-GGUF', '--file', 'tiny-Q8_0.gguf', '--name', 'mine'], {
    env,
    folder: served.folder,
  })
  await again.wrote('mine (version 1.0')
  expect(hub.asked.slice(before).map(({ path }) => path)).toEqual([
    '/api/models/org/tiny-GGUF/revision/main?blobs=true',
  ])
  expect(await again.stop()).toBe(0)
  await hub.stop()
  const offline = new Serve(['org/tiny-GGUF'], { env, folder: served.folder })
  await offline.wrote('is ready on')
  expect(offline.output).toContain('Using what was downloaded before to ')
  expect(await offline.stop()).toBe(0)
})

test('Ctrl-C ends a download, and the next call downloads the model', async () => {
  const hub = await Hub.start()
  hub.add('org/tiny', { 'model.gguf': WEIGHTS })
  hub.cuts.push(1_000_000)
  hub.onCut = () => undefined
  const env = { HF_ENDPOINT: hub.endpoint, HF_TOKEN: '' }
  const first = new Serve(['org/tiny'], { env })
  await first.wrote('Downloading model.gguf')
  expect(await first.stop()).toBe(1)
  expect(first.output).toMatch(
    /\ntorchserve-ts: Interrupted\. Run the command again to download the model\n$/,
  )

  const second = new Serve(['org/tiny'], { env, folder: first.folder })
  await second.wrote('is ready on')
  expect(second.output).toMatch(/^tiny \(version 1\.0, model\.gguf\) is ready/m) // "model" names nothing
  expect(existsSync(join(first.folder, 'cache', 'torchserve-ts', 'hub', 'org', 'tiny', 'model.gguf'))).toBe(
    true,
  )
  expect(await second.stop()).toBe(0)
})

test('several files: it says which there are, with status 1', async () => {
  const hub = await Hub.start()
  hub.add('org/m', { 'm-Q4_0.gguf': 'x', 'm-Q8_0.gguf': 'x' })
  const served = new Serve(['org/m'], { env: { HF_ENDPOINT: hub.endpoint } })
  expect(await served.status).toBe(1)
  expect(served.output).toBe(
    'torchserve-ts: org/m has 2 .gguf files: Q4_0, Q8_0. Name one as org/m:TAG or with --file\n',
  )
})

test('a URL is downloaded and checked; one with another SHA-256 is not served', async () => {
  const hub = await Hub.start()
  hub.add('org/m', { 'm.gguf': WEIGHTS })
  const url = `${hub.endpoint}/org/m/resolve/main/m.gguf`
  const env = { HF_ENDPOINT: 'http://127.0.0.1:9' } // the URL is none of the hub then
  const wrong = new Serve([url, '--sha256', 'a'.repeat(64)], { env })
  expect(await wrong.status).toBe(1)
  expect(wrong.output).toContain(`its SHA-256 must be ${'a'.repeat(64)}, found ${sha256(WEIGHTS)}`)
  const right = new Serve([url, '--sha256', sha256(WEIGHTS)], { env, folder: wrong.folder })
  await right.wrote('is ready on')
  expect(await right.stop()).toBe(0)
})

test('a redirect from https to http is not followed', async () => {
  const answer = (_request: unknown, response: ServerResponse) =>
    response.writeHead(302, { location: 'http://localhost:9/m.gguf' }).end()
  const server = createServer({ cert: CERT, key: KEY }, answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `https://localhost:${(server.address() as AddressInfo).port}/m.gguf`
  const served = new Serve([url], { env: { NODE_EXTRA_CA_CERTS: CERT_FILE } })
  expect(await served.status).toBe(1)
  server.close()
  expect(served.output).toMatch(/it redirects from https to http \(localhost:9\), which is not supported\n$/)
})

test('a file, its folder, and a handler beside it are served from where they are', async () => {
  const folder = tempDir()
  mkdirSync(join(folder, 'chat'))
  writeFileSync(join(folder, 'chat', 'my model.gguf'), WEIGHTS)
  mkdirSync(join(folder, 'words'))
  writeFileSync(
    join(folder, 'words', 'handler.ts'),
    'export const handle = (requests: { body?: unknown }[]) => requests.map(({ body }) => `${String(body)}!`)\n',
  )
  // In its own folder: that is the server's working folder, which workers may not read.
  const env = { TEMP: tempDir() }
  const file = new Serve(['my model.gguf'], { folder: join(folder, 'chat'), env })
  await file.wrote('OpenAI:')
  expect(file.output).toMatch(/^my_model \(/m)
  const inFolder = new Serve(['.', '--name', 'here'], { folder: join(folder, 'chat'), env })
  await inFolder.wrote('OpenAI:')
  const [shown] = JSON.parse(await inFolder.run('status', '--json')) as [{ folder: string }]
  expect(shown.folder).toBe(realpathSync(join(folder, 'chat')))
  const words = new Serve(['words', '--name', 'shout'], { folder })
  await words.wrote('TorchServe:')
  expect((await words.curls()).get('TorchServe')).toBe('Once upon a time!')
  for (const each of [file, inFolder, words]) expect(await each.stop()).toBe(0)
})

test('flags set what the model runs with, and a key that clients must send', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'm.gguf'), WEIGHTS)
  writeFileSync(join(folder, 'chat.jinja'), '{{ messages[0].content }} says')
  const flags = [
    '-c',
    '128',
    '-np',
    '2',
    '-t',
    '1',
    '-ngl',
    '0',
    '-a',
    'mine',
    '--chat-template-file',
    'chat.jinja',
  ]
  const limits = ['-to', '700', '--queue-timeout=800', '--host', '127.0.0.1', '--api-key', "o'ne,two"]
  const served = new Serve(['m.gguf', ...flags, ...limits, '--verbose'], { folder })
  await served.wrote('OpenAI:')
  expect(served.output).toContain(
    'context of 128 tokens, 2 sequences, 1 thread, gpu false, the configured chat template',
  )
  const answers = await served.curls()
  expect(answers.get('OpenAI')).toMatch(/data: \[DONE\]/)
  const [, address] = /^mine \(.*\) is ready on (\S+)\. /m.exec(served.output)!
  const get = async (path: string, key?: string) => {
    const response = await fetch(`${address}${path}`, { headers: { authorization: `Bearer ${key}` } })
    return [response.status, await response.json()]
  }
  expect((await get('/v1/models', 'three'))[0]).toBe(401)
  expect((await get('/v1/models', 'two'))[0]).toBe(200)
  expect(await get('/health')).toEqual([200, { status: 'ok' }])
  const [shown] = JSON.parse(await served.run('status', '--json')) as [{ models: object[] }]
  expect(shown.models).toEqual([expect.objectContaining({ responseTimeout: 700 })])
  expect(await served.stop()).toBe(0)
  expect(readdirSync(join(folder, 'tmp'))).toEqual(['models'])
})

test.each([
  [['--host', '0.0.0.0'], /Other machines can reach .*--api-key makes clients send a key\n$/],
  [['-c', '0'], /'-c, --ctx-size <tokens>'.* must be a whole number above 0/],
  [['-np', 'x'], /'--parallel <number>'.* must be a whole number above 0/],
  [['--chat-template', 'none.jinja'], /It must be a Jinja template or a file with one/],
  [['--api-key', 'a,'], /A key must have 1 to 1024/],
])('a flag that cannot be followed ends the command in one line: %j', async (flags, message) => {
  const folder = tempDir()
  writeFileSync(join(folder, 'm.gguf'), WEIGHTS)
  const served = new Serve(['m.gguf', ...flags], { folder })
  expect(await served.status).toBe(1)
  expect(served.output).toMatch(message)
  expect(served.output.replace(/^Loading .*\n/, '').trimEnd()).not.toContain('\n')
})

test('a stop in another folder leaves it alone, and says where it runs', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'handler.ts'), 'export const handle = () => ["x"]\n')
  const env = { TEMP: tempDir() }
  const served = new Serve(['.'], { folder, env })
  await served.wrote('TorchServe:')
  const stop = (cwd: string) => execa(process.execPath, [CLI, '--stop'], { cwd, env, reject: false })
  const { exitCode, stderr } = await stop(tempDir())
  expect([exitCode, stderr]).toEqual([
    1,
    expect.stringMatching(
      /^torchserve-ts: no server of this folder runs\. End these with Ctrl-C, .*\n {2}pid \d+ in /,
    ),
  ])
  expect((await served.curls()).get('TorchServe')).toBe('x')
  expect((await stop(folder)).exitCode).toBe(0)
  expect(await served.status).toBe(0)
})

test('of a worker that died it says so, and that it serves again', async () => {
  const folder = tempDir()
  writeFileSync(
    join(folder, 'handler.ts'),
    'export const handle = (requests: { body?: unknown }[]) => (requests[0]?.body === "end" ? process.exit(3) : ["x"])\n',
  )
  const served = new Serve(['.', '--name', 'ends'], { folder })
  await served.wrote('TorchServe:')
  const [, address] = /is ready on (\S+)\. /.exec(served.output)!
  const headers = { 'content-type': 'text/plain' }
  const { status } = await fetch(`${address}/predictions/ends`, { method: 'POST', body: 'end', headers })
  expect(status).toBe(500)
  await served.wrote('The worker serves again, after start 2\n')
  expect(served.output).toContain('Worker died: The process exited with code 3\n')
  expect((await served.curls()).get('TorchServe')).toBe('x')
  expect(await served.stop()).toBe(0)
})

test('pages of this machine may use what it serves, and pages of others may not', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'handler.mjs'), 'export const handle = (requests) => requests.map(() => "x")\n')
  const served = new Serve(['.', '--name', 'words'], { folder })
  await served.wrote('is ready on')
  const [, address] = /is ready on (\S+)\. /.exec(served.output)!
  const preflight = async (origin: string) => {
    const headers = {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type',
    }
    const { status, headers: got } = await fetch(`${address}/v2/models/words/infer`, {
      method: 'OPTIONS',
      headers,
    })
    return [status, got.get('access-control-allow-origin'), got.get('access-control-allow-headers')]
  }
  expect(await preflight('http://localhost:5173')).toEqual([200, 'http://localhost:5173', 'content-type'])
  expect((await preflight('https://app.example.com'))[0]).toBe(403)
  expect(await served.stop()).toBe(0)
})

test('a handler that cannot load ends the command with the cause', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'handler.ts'), "throw new Error('no luck')\n")
  const served = new Serve(['.'], { folder })
  expect(await served.status).toBe(1)
  expect(served.output).toMatch(/^torchserve-ts: .*did not load: .*no luck/m)
})

/** An installation that has everything but the packages that GGUF needs. @returns its command */
function installedWithoutGguf(): string {
  const modules = join(tempDir(), 'lib', 'node_modules')
  const installed = join(modules, 'torchserve-ts')
  mkdirSync(installed, { recursive: true })
  for (const part of ['dist', 'configs', 'proto', 'libexec', 'package.json'])
    cpSync(join(REPOSITORY, part), join(installed, part), { recursive: true })
  const optional = ['node-llama-cpp', '@huggingface', '@node-llama-cpp']
  for (const name of readdirSync(join(REPOSITORY, 'node_modules')).filter((each) => !optional.includes(each)))
    symlinkSync(join(REPOSITORY, 'node_modules', name), join(modules, name))
  return join(installed, 'dist', 'frontend', 'cli.js')
}

describe('the packages that GGUF needs are named together', () => {
  const LINE =
    /^torchserve-ts: GGUF models need @huggingface\/jinja and node-llama-cpp, not installed here\. Install with: npm install --global '@huggingface\/jinja@\^[\d.]+' 'node-llama-cpp@\^[\d.]+'\n$/

  test('before anything is downloaded', async () => {
    const hub = await Hub.start()
    const served = new Serve(['org/m'], { cli: installedWithoutGguf(), env: { HF_ENDPOINT: hub.endpoint } })
    expect(await served.status).toBe(1)
    expect(served.output).toMatch(LINE)
    expect(hub.asked).toEqual([])
  })

  test('for a folder with weights, before a worker starts', async () => {
    const folder = tempDir()
    writeFileSync(join(folder, 'm.gguf'), WEIGHTS)
    const served = new Serve(['.'], { folder, cli: installedWithoutGguf() })
    expect(await served.status).toBe(1)
    expect(served.output).toMatch(LINE)
  })

  test('for a handler that has the built-in one, without stacks of Node', async () => {
    const folder = tempDir()
    writeFileSync(join(folder, 'handler.ts'), "export { default } from 'torchserve-ts/gguf'\n")
    const served = new Serve(['.'], { folder, cli: installedWithoutGguf() })
    expect(await served.status).toBe(1)
    expect(served.output).toMatch(
      /^torchserve-ts: .* did not load: The packages @huggingface\/jinja and node-llama-cpp are not installed\. .*: npm install @huggingface\/jinja node-llama-cpp$/m,
    )
    expect(served.output).not.toContain('node:internal')
  })
})

test.each(['--file', '--revision'])('%s is refused for what is not on Hugging Face', async (flag) => {
  const folder = tempDir()
  writeFileSync(join(folder, 'handler.ts'), 'export const handle = () => ["x"]\n')
  const served = new Serve(['.', flag, 'x'], { folder })
  expect(await served.status).toBe(1)
  expect(served.output).toBe(`torchserve-ts: ${flag} is only for a model of Hugging Face: org/name\n`)
})

test('a part of a GGUF model that is missing is told once', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'm-00001-of-00002.gguf'), WEIGHTS)
  const served = new Serve(['./m-00001-of-00002.gguf'], { folder })
  expect(await served.status).toBe(1)
  expect(served.output.split('m-00002-of-00002.gguf, which is not there')).toHaveLength(2)
  expect(served.output).not.toContain('ENOENT')
})
