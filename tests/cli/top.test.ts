import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
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
