import { writeSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { keepTicksFast } from '../common/timer.ts'
import { parseArguments, rankFrom, type WorkerAddress } from './arguments.ts'
import { describeThrown, isOwn } from './handler-error.ts'
import { WorkerSession } from './session.ts'

/**
 * The worker process: one model, one connection. `node main.js --sock-type unix --sock-name PATH` or
 * `--sock-type tcp --port N`. It exits when the connection or its stdin ends. On SIGTERM it finishes running
 * requests first, because a signal to the whole process group must not break streams that the frontend lets
 * finish. SIGINT (Ctrl-C) is left to the frontend.
 */

let session: WorkerSession | undefined

process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => void finish())
process.stdin
  .on('end', () => void leave(0))
  .on('error', () => void leave(0))
  .resume()
process.on('uncaughtException', (error) => judge('Uncaught exception', error))
process.on('unhandledRejection', (reason) => judge('Unhandled rejection', reason))

try {
  start()
} catch (thrown) {
  say(String(thrown instanceof Error ? thrown.message : thrown).replaceAll('\n', ' '))
  process.exit(1)
}

function start(): void {
  keepTicksFast()
  const { address, maxFrameBytes } = parseArguments(process.argv.slice(2))
  const rank = rankFrom(process.env)
  const server = createServer({ noDelay: true }, (socket) => {
    server.close() // a worker has exactly one connection; this also removes the socket file
    if (session !== undefined) socket.destroy()
    else session = new WorkerSession(socket, rank, maxFrameBytes, { onEnd: ended })
  })
  server.on('error', (error) => {
    say(`The worker cannot listen: ${error.message}`)
    process.exit(1)
  })
  server.on('listening', () => {
    process.stdout.write(`[PID]${process.pid}\nTorch worker started.\n`)
  })
  process.on('exit', () => server.close())
  listen(server, address)
}

/** Restricts a Unix socket to the worker's own user. */
function listen(server: Server, address: WorkerAddress): void {
  const umask = process.umask(0o077)
  server.listen(address)
  process.umask(umask)
}

function ended(trouble: string | undefined): void {
  if (trouble !== undefined) say(trouble)
  process.exit(trouble === undefined ? 0 : 1)
}

async function finish(): Promise<void> {
  await session?.unload()
  await leave(0)
}

let leaving = false
async function leave(code: number): Promise<void> {
  if (leaving) return
  leaving = true
  await session?.end()
  process.exit(code)
}

/**
 * A handler may ignore errors that the server gave it. Any other unhandled error leaves an unknown state, so
 * the worker exits.
 */
function judge(what: string, thrown: unknown): void {
  if (isOwn(thrown)) return
  say(`${what}: ${describeThrown(thrown)}`)
  process.exit(1)
}

/** Synchronous, because the process may be about to exit. */
function say(text: string): void {
  try {
    writeSync(2, `${text}\n`)
  } catch {
    // nobody reads the output any more
  }
}
