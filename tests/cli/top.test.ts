import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import type { OpenRequest } from '../../common/server-events.ts'
import type { ShownServer } from '../../frontend/cli/shown-servers.ts'
import { runTop } from '../../frontend/cli/top.ts'
import { topPage } from '../../frontend/cli/top-page.ts'
import type { ServedModel } from '../../frontend/server-api.ts'
import { CLI, REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa, spawn } from '../support/tools.ts'
import { RawRequest } from '../support/raw-http.ts'

const COUNT = join(REPOSITORY, 'model-store', 'count')

/** Where the commands look for servers. */
const envOf = ({ folder }: Pick<Server, 'folder'>): NodeJS.ProcessEnv => ({
  ...process.env,
  TEMP: join(folder, 'tmp'),
})

/** The command while it runs; `act` is called when `words` have come so many times. */
async function watched(
  command: [string, ...string[]],
  server: Pick<Server, 'folder'>,
  words: string,
  act: (child: ReturnType<typeof spawn>, out: string) => void,
  times = 2,
): Promise<{ status: number | null; out: string }> {
  const [file, ...args] = command
  const child = spawn(file, args, { env: envOf(server), stdio: ['pipe', 'pipe', 'inherit'] })
  let out = ''
  let isDone = false
  child.stdout.on('data', (data: Buffer) => {
    out += data.toString()
    if (isDone || out.split(words).length <= times) return
    isDone = true
    act(child, out)
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

/** What it shows where no server runs. */
const NONE = 'TorchServe-TS is not currently running.'
/** Looks of which a test sees only the first, and a test that waits for the second has failed. */
const RARELY = ['top', '--interval', '60']
const SOON_MS = 20_000

test(
  'the next look comes after the interval, and q does not wait for it',
  async () => {
    const server = { folder: tempDir() }
    const top: [string, ...string[]] = [process.execPath, CLI, ...RARELY]
    const quit = async (child: ReturnType<typeof spawn>): Promise<void> => {
      // Time for some looks, if they came too early.
      await execa(process.execPath, [CLI, 'top', '--once'], { env: envOf(server), reject: false })
      child.stdin!.write('q')
    }
    const { status, out } = await watched(top, server, NONE, (child) => void quit(child), 1)
    expect([status, out]).toEqual([0, `${NONE}\n`])
  },
  SOON_MS,
)

test(
  'it ends at once when SIGTERM comes',
  async () => {
    const top: [string, ...string[]] = [process.execPath, CLI, ...RARELY]
    const end = (child: ReturnType<typeof spawn>): void => void child.kill('SIGTERM')
    const { status } = await watched(top, { folder: tempDir() }, NONE, end, 1)
    expect(status).toBe(0)
  },
  SOON_MS,
)

test(
  'it does not wait for the next look when nobody has read the first',
  async () => {
    const env = envOf({ folder: tempDir() })
    const child = spawn(process.execPath, [CLI, ...RARELY], { env, stdio: ['pipe', 'pipe', 'inherit'] })
    child.stdout.destroy()
    expect(await once(child, 'exit')).toEqual([0, null])
  },
  SOON_MS,
)

test.each(['0', '0.05', '-1', '3601', 'x'])('an interval of %s is refused', async (interval) => {
  const told: string[] = []
  const output = { out: () => undefined, err: (line: string) => void told.push(line) }
  // With --once it would end, were the interval taken.
  expect(await runTop(['--once', '--interval', interval], output)).toBe(1)
  expect(told.join('\n')).toContain('It must be from 0.1 to 3600.')
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

/** End of a page in a terminal. */
const PAGE_END = '\u001b[J'

onLinux(
  'in a terminal lines end where its columns do',
  async () => {
    const line = `stty rows 15 cols 20; "${process.execPath}" "${CLI}" top --interval 60`
    const quit = (child: ReturnType<typeof spawn>): void => void child.stdin!.write('q')
    const command: [string, ...string[]] = ['script', '-qec', line, '/dev/null']
    const { status, out } = await watched(command, { folder: tempDir() }, PAGE_END, quit, 1)
    expect(status).toBe(0)
    expect(out).toContain(`\u001b[H${NONE.slice(0, 20)}\u001b[K${PAGE_END}`)
  },
  SOON_MS,
)

onLinux(
  'in a terminal it gives the screen back when SIGTERM comes',
  async () => {
    const line = `echo "pid $$"; exec "${process.execPath}" "${CLI}" top --interval 60`
    const end = (_script: unknown, out: string): void =>
      void process.kill(Number(/pid (\d+)/.exec(out)![1]), 'SIGTERM')
    const command: [string, ...string[]] = ['script', '-qec', line, '/dev/null']
    const { status, out } = await watched(command, { folder: tempDir() }, PAGE_END, end, 1)
    expect(status).toBe(0)
    expect(out.trimEnd().endsWith('\u001b[?25h\u001b[?1049l')).toBe(true)
  },
  SOON_MS,
)

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

test('servers with more requests than there is room for keep within the lines', () => {
  const many = Array.from({ length: 200 }, (_, index) => openRequest(index))
  for (const height of [26, 27, 60])
    expect(topPage([serverWith(many), serverWith(many)], height).length).toBeLessThanOrEqual(height)
})

function servedModel(pendingRequests: number, fields: Partial<ServedModel> = {}): ServedModel {
  const jobQueueStatus = { pendingRequests, remainingCapacity: 10 }
  return { modelName: 'words', modelVersion: '1.0', workers: [], jobQueueStatus, ...fields } as ServedModel
}

test('the page shows how full the queues are, what memory workers have, and which models cannot serve', () => {
  const worker = { id: '9000', state: 'ready', pid: 7, inFlight: 1, restarts: 2, memoryUsage: 61e6 }
  const starting = { ...worker, id: '9001', state: 'starting', pid: -1, memoryUsage: 0 }
  const failure = { id: 'one', at: 'now', reason: 'no weights' }
  const models = [
    servedModel(5, { workers: [worker, starting] as unknown as ServedModel['workers'] }),
    servedModel(2, { modelName: 'broken', failure }),
  ]
  const [, summary, , ...rows] = topPage([{ ...serverWith([]), models }])
  expect(summary).toBe('  0 open requests, 7 in the queue')
  expect(rows.map((row) => row.trim().split(/ {2,}/))).toEqual([
    ['words', '1.0', '5/15'],
    ['9000', 'ready', '7', '1', '2', '61 MB'],
    ['9001', 'starting', '1', '2'],
    ['broken', '1.0', 'cannot serve', '2/12'],
  ])
})
