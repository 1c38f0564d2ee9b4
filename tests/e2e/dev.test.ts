import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { ModelDescription } from '../../frontend/models/operations.ts'
import { DevServer } from '../support/dev-server.ts'
import { freePorts } from '../support/ports.ts'
import { RawRequest, rawRequest, type RawResponse } from '../support/raw-http.ts'
import { CLI } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

const SERVES = 'the new code serves'
const FAILED = 'it does not load; the old code goes on serving'
const READY = 'each save is loaded'

/** Streams two items. A request `wait` gets the second when the file .open is there. */
const HANDLER = `
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context, HandlerRequest } from 'torchserve-ts'
import { WORD } from '../../shared/word.ts'

export async function* handle(requests: HandlerRequest[], context: Context): AsyncGenerator<string[]> {
  yield [\`\${WORD} begins \`]
  const open = join(context.properties.modelDir, '.open')
  while (requests[0]?.['body'] === 'wait' && !existsSync(open))
    await sleep(10, undefined, { signal: context.signal })
  yield [\`\${WORD} ends\`]
}
`

let root: string
let handler: string
const servers: DevServer[] = []

beforeEach(() => {
  root = tempDir()
  mkdirSync(join(root, 'shared'))
  mkdirSync(join(root, 'handlers', 'words'), { recursive: true })
  handler = join(root, 'handlers', 'words', 'handler.ts')
  writeFileSync(handler, HANDLER)
  word('old')
})

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
})

async function dev(folder = 'handlers'): Promise<DevServer> {
  const server = new DevServer(folder, root)
  servers.push(server)
  await server.said(READY)
  return server
}

/** Changes a file that the handler imports from outside of its folder. */
function word(text: string): void {
  writeFileSync(join(root, 'shared', 'word.ts'), `export const WORD = '${text}'\n`)
}

/** Saves as editors do that replace the file. */
function save(text: string): void {
  writeFileSync(`${handler}.part`, text)
  renameSync(`${handler}.part`, handler)
}

const TEXT = { 'content-type': 'text/plain' }

const ask = (server: DevServer, model = 'words'): Promise<string> =>
  rawRequest(server.port, `/predictions/${model}`, { headers: TEXT, body: 'go' }).then(({ body }) => body)

const begin = (server: DevServer, model = 'words'): RawRequest =>
  new RawRequest(server.port, `/predictions/${model}`, { headers: TEXT, body: 'wait' })

/** The number of requests that wait for a worker. */
async function pending(server: Pick<DevServer, 'managementPort'>): Promise<number> {
  const { body } = await rawRequest(server.managementPort, '/models/words', { method: 'GET' })
  const [{ jobQueueStatus }] = JSON.parse(body) as [ModelDescription]
  return jobQueueStatus.pendingRequests
}

test('the start says where the console is, and it is there', async () => {
  const server = await dev()
  const [, address] = /The console is at (\S+)/.exec(server.output)!
  expect(address).toBe(`http://127.0.0.1:${server.managementPort}/console`)
  expect((await fetch(address!)).status).toBe(200)
})

describe('a save', () => {
  test('is what the next request gets; a stream and a waiting request from before end with the old code', async () => {
    const server = await dev()
    const stream = begin(server)
    await stream.gotChunks(1)
    const waiting = ask(server)
    while ((await pending(server)) === 0);
    word('new')
    await server.said(SERVES)
    expect(await ask(server)).toBe('new begins new ends')
    writeFileSync(join(root, 'handlers', 'words', '.open'), '')
    const { body, complete } = await stream.done
    expect([body, complete]).toEqual(['old begins old ends', true])
    expect(await waiting).toBe('old begins old ends')
  })

  test('that does not compile, or throws, leaves the old code and says where; the next good one serves', async () => {
    const server = await dev()
    save(`${HANDLER}\nconst broken = (`)
    await server.said(FAILED)
    expect(server.output).toMatch(/handler\.ts:16:\d+:\n +16 │ const broken = \(/)
    expect(await ask(server)).toBe('old begins old ends')
    save(`${HANDLER}\nfunction boom(): never {\n  throw new Error('no weights')\n}\nboom()`)
    await server.said(FAILED, 2)
    expect(server.output).toContain(`  Error: no weights\n      at boom (${handler}:17:9)\n`)
    expect(await ask(server)).toBe('old begins old ends')
    save(HANDLER.replace(' ends', ' is over'))
    await server.said(SERVES)
    expect(await ask(server)).toBe('old begins old is over')
  })

  test('that mends a new file, which kept the handler from loading, is loaded', async () => {
    const server = await dev()
    const ending = join(root, 'handlers', 'words', 'ending.ts')
    writeFileSync(ending, 'export const ENDING = (')
    save(
      HANDLER.replace(
        "'../../shared/word.ts'",
        "'../../shared/word.ts'\nimport { ENDING } from './ending.ts'",
      ).replace('} ends', '} ${ENDING}'),
    )
    await server.said(FAILED)
    writeFileSync(ending, "export const ENDING = 'is over'")
    await server.said(SERVES)
    expect(await ask(server)).toBe('old begins old is over')
  })

  test('during a load calls it off, and is loaded itself', async () => {
    const server = await dev()
    save(
      `${HANDLER}\nconsole.log('hangs')\nsetInterval(() => undefined, 1000)\nawait new Promise(() => undefined)`,
    )
    await server.said('hangs')
    word('new')
    save(HANDLER)
    await server.said(SERVES)
    expect(await ask(server)).toBe('new begins new ends')
    expect(server.output).not.toContain(FAILED)
  })

  test('of a test beside the handler, of notes, or of the keys of a server loads nothing', async () => {
    const server = await dev()
    for (const name of ['handler.test.ts', 'README.md', 'key_file.json'])
      writeFileSync(join(root, 'handlers', 'words', name), '')
    word('new')
    await server.said(SERVES)
    expect(server.lines.filter((line) => line.endsWith(' changed'))).toEqual([
      'words: ../../shared/word.ts changed',
    ])
  })
})

describe('a save during the first load, for which a request waits:', () => {
  const HANGS = "console.log('loads')\nsetInterval(() => undefined, 1000)\nawait new Promise(() => undefined)"

  /** A server whose handler does not end to load, and a request that waits for it. */
  async function firstLoad(): Promise<{ server: DevServer; waiting: Promise<RawResponse>; port: number }> {
    save(`${HANDLER}\n${HANGS}`)
    const [port = 0] = await freePorts(1)
    const server = new DevServer('handlers', root, CLI, port)
    servers.push(server)
    await server.said('loads')
    const waiting = rawRequest(port, '/predictions/words', { headers: TEXT, body: 'go' })
    while ((await pending({ managementPort: port })) === 0);
    return { server, waiting, port }
  }

  test('the request ends, and the new code serves', async () => {
    const { server, waiting, port } = await firstLoad()
    word('new')
    save(HANDLER)
    const { status, body } = await waiting
    expect([status, body]).toEqual([503, expect.stringContaining('could not be loaded')])
    await server.said('words: it serves')
    const { body: next } = await rawRequest(port, '/predictions/words', { headers: TEXT, body: 'go' })
    expect(next).toBe('new begins new ends')
  })

  test('if the new code does not load, the request says so', async () => {
    const { waiting, port } = await firstLoad()
    save('export const handle = (')
    const { status, body } = await waiting
    expect([status, body]).toEqual([503, expect.stringContaining('could not be loaded')])
    expect((await rawRequest(port, '/predictions/words', { body: 'go' })).status).toBe(404)
  })

  test('if the folder is removed, the request ends', async () => {
    const { waiting } = await firstLoad()
    rmSync(join(root, 'handlers', 'words'), { recursive: true })
    expect((await waiting).status).toBe(503)
  })
})

test('a handler that cannot load at the start is served after the save that mends it', async () => {
  save('throw new Error("not yet")')
  const server = await dev()
  await server.said('words: it does not load; the next change of its files loads it again')
  save(HANDLER)
  await server.said('words: it serves')
  expect(await ask(server)).toBe('old begins old ends')
})

describe('what takes long is told of', () => {
  test('a load, at the start and after a save', async () => {
    save('export const initialize = () => new Promise(() => undefined)\nexport const handle = () => []')
    const server = new DevServer('handlers', root)
    servers.push(server)
    await server.said(
      'words: it still loads, after 5 s: its packages, the top level of its code, or initialize',
    )
    save(HANDLER)
    await server.said('words: it serves')
    save(`${HANDLER}\nawait new Promise((resolve) => setTimeout(resolve, 60_000))`)
    await server.said('initialize; the old code serves meanwhile')
  })

  test('a worker that died, and that it is back', async () => {
    save('export const handle = (requests) => (requests[0].body === "go" ? process.exit(3) : ["hello"])')
    const server = await dev()
    expect(await ask(server)).toContain('Worker died.')
    await server.said('words: The worker serves again')
    expect(server.lines).toContain('words: Worker died: The process exited with code 3')
    const { body } = await rawRequest(server.port, '/predictions/words', { headers: TEXT, body: 'again' })
    expect(body).toBe('hello')
  })
})

test('a handler whose package is missing is served after npm install, without a save', async () => {
  save('import text from "dev-test-package"\nexport const handle = (requests) => requests.map(() => text)\n')
  const server = await dev()
  await server.said('The package dev-test-package is not installed.')
  const installed = join(root, 'handlers', 'words', 'node_modules', 'dev-test-package')
  mkdirSync(installed, { recursive: true })
  writeFileSync(join(installed, 'package.json'), '{"type":"module","main":"index.js"}')
  writeFileSync(join(installed, 'index.js'), 'export default "installed"')
  // What npm writes last.
  writeFileSync(join(root, 'handlers', 'words', 'package.json'), '{"dependencies":{"dev-test-package":"1"}}')
  await server.said('words: it serves')
  expect(await ask(server)).toBe('installed')
})

test('a new folder is served, and one that is removed is not', async () => {
  const server = await dev()
  mkdirSync(join(root, 'handlers', 'more'))
  writeFileSync(join(root, 'handlers', 'more', 'handler.mjs'), 'export const handle = (requests) => ["more"]')
  await server.said('more: it serves')
  expect(await ask(server, 'more')).toBe('more')
  rmSync(join(root, 'handlers', 'more'), { recursive: true })
  await server.said('more: its handler or its folder is gone')
  expect((await rawRequest(server.port, '/predictions/more', { body: '' })).status).toBe(404)
  expect(server.lines.filter((line) => line.endsWith(' changed'))).toEqual([])
})

test('a folder that gets its handler later is served, and again when its handler is back', async () => {
  const server = await dev()
  const more = join(root, 'handlers', 'more')
  mkdirSync(more)
  mkdirSync(join(root, 'handlers', 'other'))
  writeFileSync(join(root, 'handlers', 'other', 'handler.mjs'), 'export const handle = () => ["other"]')
  // Both folders have been looked at then.
  await server.said('other: it serves')
  writeFileSync(join(more, 'handler.mjs'), 'export const handle = () => ["more"]')
  await server.said('more: it serves')
  renameSync(join(more, 'handler.mjs'), join(more, 'kept.mjs'))
  await server.said('more: its handler or its folder is gone')
  renameSync(join(more, 'kept.mjs'), join(more, 'handler.mjs'))
  await server.said('more: it serves', 2)
  expect(await ask(server, 'more')).toBe('more')
})

test('a folder that was removed and is back is served, and its next save is loaded', async () => {
  const server = await dev()
  const words = join(root, 'handlers', 'words')
  rmSync(words, { recursive: true })
  await server.said('words: its handler or its folder is gone')
  mkdirSync(words)
  save(HANDLER)
  await server.said('words: it serves', 2)
  save(HANDLER.replace(' ends', ' is over'))
  await server.said(SERVES)
  expect(await ask(server)).toBe('old begins old is over')
})

test('the line that it prints works, and what handlers print is there', async () => {
  save(`${HANDLER}\nconsole.log('loaded it')`)
  const server = await dev(join('handlers', 'words'))
  expect(server.lines).toContain('words | loaded it')
  const line = server.lines.find((each) => each.includes('curl '))!
  const { stdout } = await execa('sh', ['-c', line.replace('curl ', 'curl --silent ')])
  expect(stdout).toBe('old begins old ends')
})

test('a text of curl -d that is read as a form is explained, and one without a = reaches the handler', async () => {
  writeFileSync(handler, 'export const handle = ([request]) => [JSON.stringify(request)]')
  const server = await dev()
  const url = `http://127.0.0.1:${server.port}/predictions/words`
  const curl = async (text: string): Promise<string> => (await execa('curl', ['-s', '-d', text, url])).stdout
  expect([await curl('hello'), await curl('{"a":"=b"}')]).toEqual(['{"body":"hello"}', '{"body":{"a":"=b"}}'])
  expect(server.output).not.toContain('read as a form')
  expect(Object.keys(JSON.parse(await curl('2+2=?')) as object)).toEqual(['2 2'])
  await server.said('read as a form, because curl')
})

test('the client of a handler that throws, or returns what nothing can send, reads what and where', async () => {
  save(
    `export const handle = ([request]) => {
      if (request.body === 'item') return [() => 1]
      if (request.body === 'refuse') throw new PredictionException('not this', 400)
      return [request.none.text]
    }
    import { PredictionException } from 'torchserve-ts'`,
  )
  const server = await dev()
  const answer = async (path: string, text: string, type = 'text/plain'): Promise<string> =>
    (await rawRequest(server.port, path, { headers: { 'content-type': type }, body: text })).body
  const thrown = `Prediction failed: TypeError: Cannot read properties of undefined (reading 'text') (${handler}:4:28)`
  const plain = JSON.parse(await answer('/predictions/words', 'go')) as object
  expect(plain).toEqual({ code: 503, type: 'InternalServerException', message: thrown })
  const v2 = await answer('/v2/models/words/generate', '{"text_input":"go"}', 'application/json')
  expect(JSON.parse(v2)).toEqual({ error: thrown })
  expect(await answer('/predictions/words', 'item')).toContain(
    'Unsupported model output data type: An item must be a string, bytes',
  )
  expect(await answer('/predictions/words', 'refuse')).toContain('"message": "not this"')
})

test('a temporary folder that is not there is made', async () => {
  const temp = join(root, 'none', 'tmp')
  const server = new DevServer('handlers', root, CLI, 0, { TEMP: temp, TMPDIR: temp })
  servers.push(server)
  await server.said(READY)
  expect(existsSync(temp)).toBe(true)
})

test('variables of .env reach the handler, but for those that are set', async () => {
  save('export const handle = () => [`${process.env.TOY_KEY} ${process.env.TOY_OWN}`]')
  writeFileSync(join(root, 'handlers', '.env'), 'TOY_KEY="a b" # comment\nTOY_OWN=file\n')
  const server = new DevServer('handlers', root, CLI, 0, { TOY_OWN: 'own' })
  servers.push(server)
  await server.said(READY)
  expect(await ask(server)).toBe('a b own')
  expect(server.output).toMatch(/Variables of .*\.env are set/)
})

test('a port that is taken leaves the next free one, and the start says so', async () => {
  const [port = 0] = await freePorts(1)
  const other = createServer().listen(port, '127.0.0.1')
  await once(other, 'listening')
  const server = new DevServer('handlers', root, CLI, port)
  servers.push(server)
  await server.said(READY)
  other.close()
  expect(server.lines[0]).toBe(`Port ${port} is taken; serving on ${server.port}`)
  expect(server.port).toBeGreaterThan(port)
  expect(await ask(server)).toBe('old begins old ends')
})

test('ports of config.properties count, and addresses that do not are named', async () => {
  const [rest, inference, management] = await freePorts(3)
  const config = [
    `inference_address=http://127.0.0.1:${rest}`,
    'management_address=http://0.0.0.0:8081',
    'metrics_address=http://127.0.0.1:8082',
    `grpc_inference_port=${inference}`,
    `grpc_management_port=${management}`,
    'grpc_inference_address=0.0.0.0',
    'number_of_netty_threads=4',
  ]
  writeFileSync(join(root, 'config.properties'), config.join('\n'))
  const server = new DevServer('handlers', root, CLI, 'configured')
  servers.push(server)
  await server.said(READY)
  expect(server.lines.filter((line) => line.startsWith('config.properties'))).toEqual([
    'config.properties:7: number_of_netty_threads has no effect here: it tunes the Java server',
    `config.properties:2: management_address does not count for dev, which uses http://127.0.0.1:${rest}`,
    'config.properties:3: metrics_address does not count for dev, which has no metrics',
    'config.properties:6: grpc_inference_address does not count for dev, which uses 127.0.0.1',
  ])
  expect(server.lines.filter((line) => line.includes(' API listens on '))).toEqual([
    `Inference and Management REST API listens on http://127.0.0.1:${rest}`,
    `Inference gRPC API listens on 127.0.0.1:${inference}`,
    `Management gRPC API listens on 127.0.0.1:${management}`,
  ])
})

test('Ctrl-C ends it, its streams too, and nothing is left behind', async () => {
  const server = await dev(join('handlers', 'words'))
  const stream = begin(server)
  await stream.gotChunks(1)
  expect(await server.stop()).toBe(0)
  expect((await stream.done).complete).toBe(false)
  expect(server.lines).toContain(
    'Stopping: 1 running request ends now, handlers have 10 s to return (cancel_grace_ms); Ctrl-C again stops at once',
  )
  expect([readdirSync(server.temp, { recursive: true }), readdirSync(root)]).toEqual([
    ['models'],
    ['handlers', 'shared'],
  ])
  expect(existsSync(join(root, 'handlers', 'words', 'logs'))).toBe(false)
})

test('Ctrl-C says that it waits for a handler that does not return, and the second one waits no longer', async () => {
  save('export async function* handle() { yield ["first"]; for (;;); }')
  const server = await dev()
  const stream = begin(server)
  await stream.gotChunks(1)
  server.process.kill('SIGINT')
  await server.said('Stopping: 1 running request ends now')
  expect((await stream.done).complete).toBe(false)
  expect(server.process.exitCode).toBe(null)
  expect(await server.stop()).toBe(130)
})

test.each([
  ['nowhere', 'nowhere must be a folder'],
  ['shared', 'shared must contain a handler.ts, handler.js, handler.py or a .gguf file'],
])('a folder without a model is refused: %s', async (folder, message) => {
  const { exitCode, stderr } = await execa(process.execPath, [CLI, 'dev', folder], {
    cwd: root,
    reject: false,
  })
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining(message)])
})
