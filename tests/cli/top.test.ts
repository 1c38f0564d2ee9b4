import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import type { OpenRequest } from '../../common/server-events.ts'
import type { ShownServer } from '../../frontend/cli/shown-servers.ts'
import { topPage } from '../../frontend/cli/top-page.ts'
import { CLI, REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa, spawn } from '../support/tools.ts'
import { RawRequest } from '../support/raw-http.ts'

const COUNT = join(REPOSITORY, 'model-store', 'count')

/** Where the commands look for servers. */
const envOf = ({ folder }: Server): NodeJS.ProcessEnv => ({ ...process.env, TEMP: join(folder, 'tmp') })

/** The command while it runs; `typed` goes to its stdin when a page with `words` is there. */
async function watched(
  command: [string, ...string[]],
  server: Server,
  words: string,
  act: (child: ReturnType<typeof spawn>) => void,
): Promise<{ status: number | null; out: string }> {
  const [file, ...args] = command
  const child = spawn(file, args, { env: envOf(server), stdio: ['pipe', 'pipe', 'inherit'] })
  let out = ''
  let isDone = false
  child.stdout.on('data', (data: Buffer) => {
    out += data.toString()
    if (isDone || out.split(words).length < 3) return
    isDone = true
    act(child)
  })
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, out }
}

test('top shows models, workers, queues and open requests of a running server', async () => {
  const server = await startServer({ models: [COUNT] })
  await server.ready('count')
  const open = new RawRequest(server.ports.inference, '/predictions/count', {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ n: 2, gated: true, id: 'open' }),
  })
  await open.gotChunks(1)
  const { pid } = await server.worker('count')
  const top = () =>
    execa(process.execPath, [CLI, 'top', '--once'], { env: envOf(server), reject: false, stdin: 'ignore' })
  const { stdout, exitCode } = await top()
  expect(exitCode).toBe(0)
  const lines = stdout.split('\n')
  expect(lines[0]).toContain(`Server ${server.pid} in `)
  expect(lines[1]).toBe('  1 open request, 0 in the queue')
  expect(lines[2]).toMatch(/^ {2}MODEL +VERSION +WORKER +STATE +PID +REQUESTS +QUEUE +RESTARTS +MEMORY$/)
  expect(lines[3]).toMatch(/^ {2}count +1\.0 +0\/2000$/)
  expect(lines[4]).toMatch(new RegExp(`^ +9000 +ready +${pid} +1 +0(?: +\\d+ MB)?$`))
  expect(lines[5]).toBe('')
  expect(lines[6]).toMatch(/^ {2}MODEL +API +CLIENT +KEY +AGE +ITEMS +BYTES +FIRST +GAP +WAITS FOR +ID$/)
  expect(lines[7]).toMatch(
    /^ {2}count 1\.0 +torchserve +127\.0\.0\.1 +\d\S* m?s +1 +\d+ B +\d\S* m?s +handler +[0-9a-f-]{36}$/,
  )
  expect(lines).toHaveLength(8)
  open.destroy()
  await server.stop()
  const none = await top()
  expect([none.exitCode, none.stdout]).toEqual([1, 'TorchServe-TS is not currently running.'])
})

test('top shows it again and again, until q, an interrupt, or nobody reads', async () => {
  const server = await startServer({ models: [COUNT] })
  const command: [string, ...string[]] = [process.execPath, CLI, 'top', '--interval', '0.1']
  const quit = await watched(command, server, 'count', (child) => child.stdin!.write('q'))
  expect(quit.status).toBe(0)
  expect(quit.out).not.toContain('\u001b')
  const interrupted = await watched(command, server, 'count', (child) => child.kill('SIGINT'))
  expect(interrupted.status).toBe(0)
  const left = await watched(command, server, 'count', (child) => child.stdout!.destroy())
  expect(left.status).toBe(0)
})

const onLinux = process.platform === 'linux' ? test : test.skip

onLinux.each(['q', '\u0003'])('in a terminal it takes the screen, and gives it back on %j', async (key) => {
  const server = await startServer({ models: [COUNT], folder: tempDir() })
  const line = `"${process.execPath}" "${CLI}" top --interval 0.1`
  const shown = await watched(['script', '-qec', line, '/dev/null'], server, 'MODEL', (child) => {
    child.stdin!.write(key)
  })
  expect(shown.status).toBe(0)
  expect(shown.out).toContain('\u001b[?1049h')
  expect(shown.out.trimEnd().endsWith('\u001b[?25h\u001b[?1049l')).toBe(true)
})

/** Streams of which each has sent one item. */
async function openStreams(server: Server, count: number): Promise<RawRequest[]> {
  const streams = Array.from({ length: count }, () => {
    const body = JSON.stringify({ n: 2, gated: true, id: randomUUID() })
    const headers = { 'content-type': 'application/json' }
    return new RawRequest(server.ports.inference, '/predictions/count', { headers, body })
  })
  await Promise.all(streams.map((stream) => stream.gotChunks(1)))
  return streams
}

onLinux('in a terminal the open requests take the rows that are left, and the rest is counted', async () => {
  const server = await startServer({ models: [COUNT], folder: tempDir() })
  await server.ready('count')
  const streams = await openStreams(server, 30)
  const line = `stty rows 15 cols 150; "${process.execPath}" "${CLI}" top --interval 0.1`
  const { out, status } = await watched(
    ['script', '-qec', line, '/dev/null'],
    server,
    '30 open requests',
    (child) => {
      child.stdin!.write('q')
    },
  )
  expect(status).toBe(0)
  const page = out.split('\u001b[H')[1]!.split(/\r+\n/)
  // 14 lines: 5 of the server, a blank one, the head, 6 requests, and what is left.
  expect(page).toHaveLength(14)
  expect(page.filter((each) => each.includes('127.0.0.1'))).toHaveLength(6)
  expect(page[13]).toContain('… and 24 more')
  for (const stream of streams) stream.destroy()
})

test('status --json names the oldest 200 requests, and counts all of them', async () => {
  const server = await startServer({ models: [COUNT], folder: tempDir() })
  await server.ready('count')
  const streams = [...(await openStreams(server, 3)), ...(await openStreams(server, 202))]
  const status = [CLI, 'status', '--json']
  const { stdout } = await execa(process.execPath, status, { env: envOf(server), stdin: 'ignore' })
  const [shown] = JSON.parse(stdout) as [{ openRequests: number; requests: OpenRequest[] }]
  expect([shown.openRequests, shown.requests.length]).toEqual([205, 200])
  const ages = shown.requests.map(({ ageMs }) => ageMs)
  expect(ages).toEqual(ages.toSorted((one, other) => other - one))
  for (const stream of streams) stream.destroy()
})

function openRequest(index: number, fields: Partial<OpenRequest> = {}): OpenRequest {
  return {
    id: `id-${index}`,
    modelName: 'words',
    modelVersion: '1.0',
    dialect: 'openai',
    client: '127.0.0.1',
    ageMs: 61_000,
    streaming: true,
    items: 12,
    bytes: 34_000,
    firstResponseMs: 3.2,
    lastGapMs: 20,
    waitsFor: 'client',
    ...fields,
  }
}

function serverWith(requests: OpenRequest[], openRequests = requests.length): ShownServer {
  return {
    pid: 1,
    folder: '/f',
    state: 'running',
    started: 'now',
    listening: [],
    models: [],
    openRequests,
    requests,
  }
}

test('what callers choose cannot move the cursor, and cannot push the other columns away', () => {
  const evil = '\u001b[2J\u001b]0;title\u0007\r\n\u009b31m'
  const long = 'k'.repeat(5_000)
  const lines = topPage([
    serverWith([
      openRequest(1, {
        modelName: evil,
        modelVersion: evil,
        dialect: evil,
        client: evil,
        key: evil,
        id: evil,
      }),
      openRequest(2, { key: long, id: long }),
    ]),
  ])
  expect(lines).toHaveLength(7)
  expect(lines.join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
  expect(lines[5]).toContain('\\x1b[2J')
  expect(lines[6]).toContain(
    `${'k'.repeat(39)}…  1 min 1 s     12  34.0 kB  3.2 ms  20 ms  client     ${'k'.repeat(39)}…`,
  )
})

test.each([
  [100, 7, 0],
  [12, 7, 0],
  [11, 5, 2],
  [7, 1, 6],
  [6, 0, 7],
  [0, 0, 7],
])('of %d lines, seven requests take what is left: %d are shown, %d counted', (height, shown, left) => {
  const lines = topPage([serverWith(Array.from({ length: 7 }, (_, index) => openRequest(index)))], height)
  expect(lines.filter((line) => line.includes('id-'))).toHaveLength(shown)
  expect(lines.filter((line) => /… and/.test(line))).toEqual(
    shown > 0 && left > 0 ? [`  … and ${left} more`] : [],
  )
  // The server itself has three lines.
  expect(lines.length).toBeLessThanOrEqual(Math.max(3, height))
})

test('two servers share the lines, and what a server does not tell is counted', () => {
  const many = Array.from({ length: 200 }, (_, index) => openRequest(index))
  const lines = topPage([serverWith(many, 5_000), serverWith(many.slice(0, 2))], 26)
  expect(lines).toHaveLength(20)
  expect(lines.filter((line) => line.includes('id-'))).toHaveLength(9)
  expect(lines).toContain('  … and 4993 more')
  expect(topPage([serverWith(many, 5_000)]).at(-1)).toBe('  … and 4800 more')
})
