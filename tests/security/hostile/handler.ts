// eslint-disable-next-line @typescript-eslint/no-restricted-imports -- a handler starts what it likes
import { spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmodSync, closeSync, openSync, readdirSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What one attack needs: a path, a port, a process, a number. */
export interface Attack {
  attack: string
  path?: string
  port?: number
  pid?: number
  count?: number
}

type Tried = string | Promise<string>

const ATTACKS: Record<string, (attack: Required<Attack>, headers: Record<string, string>) => Tried> = {
  environment: () => process.env['PLANTED_SECRET'] ?? fail('not there'),
  header: (_, headers) => headers['Authorization'] ?? fail('not there'),
  read: ({ path }) => readFileSync(path, 'latin1').slice(0, 20),
  list: ({ path }) => String(readdirSync(path).length),
  write: ({ path }) => {
    writeFileSync(path, 'hostile')
    return 'written'
  },
  scratch: () => {
    writeFileSync(join(tmpdir(), 'mine'), 'x')
    return tmpdir()
  },
  memory: ({ pid }) => {
    const start = parseInt(readFileSync(`/proc/${pid}/maps`, 'latin1').split('-')[0]!, 16)
    const file = openSync(`/proc/${pid}/mem`, 'r')
    return String(readSync(file, Buffer.alloc(4), 0, 4, start))
  },
  // PTRACE_SEIZE, which does not stop the process; it ends with the tracer.
  trace: ({ pid }) => {
    const number = process.arch === 'arm64' ? 117 : 101
    const program = `exit(syscall(${number}, 0x4206, ${pid}, 0, 0) == 0 ? 0 : 1)`
    return spawnSync('perl', ['-e', program]).status === 0 ? 'traced' : fail('refused')
  },
  signal: ({ pid }) => String(process.kill(pid, 0)),
  // prlimit64 of RLIMIT_NOFILE. It only reads; with a limit to set, it could end the process.
  limits: ({ pid }) => {
    const number = process.arch === 'arm64' ? 261 : 302
    const program = `my $old = pack 'QQ', 0, 0; exit(syscall(${number}, ${pid}, 7, 0, $old) == 0 ? 0 : 1)`
    return spawnSync('perl', ['-e', program]).status === 0 ? 'read' : fail('refused')
  },
  mode: ({ path, count }) => {
    chmodSync(path, count)
    return 'changed'
  },
  tcp: async ({ port }) => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.destroy()
    return 'connected'
  },
  unix: async ({ path }) => {
    const socket = connect(path)
    await once(socket, 'connect')
    socket.destroy()
    return 'connected'
  },
  udp: async ({ port }) => {
    const socket = createSocket('udp4')
    return new Promise((resolve, reject) => {
      socket.on('error', reject)
      socket.send('x', port, '127.0.0.1', (error) => {
        socket.close()
        if (error) reject(error)
        else resolve('sent')
      })
    })
  },
  files: ({ count }) => {
    const open: number[] = []
    try {
      while (open.length < count) open.push(openSync('/dev/null', 'r'))
      return `${open.length} open`
    } finally {
      for (const file of open) closeSync(file)
    }
  },
  processes: async ({ count }) => {
    const children = []
    try {
      for (let i = 0; i < count; i += 1) {
        const child = spawn('/bin/sleep', ['60'])
        children.push(child)
        await once(child, 'spawn')
      }
      return `${children.length} started`
    } finally {
      for (const child of children) child.kill('SIGKILL')
    }
  },
  allocate: ({ count }) => {
    const held = Array.from({ length: count / 16 }, () => Buffer.alloc(16 << 20, 1))
    return `${held.length * 16} MB`
  },
}

/** Tries what the body asks for and tells how far it came. */
export async function handle(
  requests: readonly Record<string, unknown>[],
  context: Context,
): Promise<unknown[]> {
  const attack = requests[0]!['body'] as Required<Attack>
  try {
    return [{ got: await ATTACKS[attack.attack]!(attack, context.requestHeaders(0)) }]
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return [{ stopped: code ?? message }]
  }
}

interface Context {
  requestHeaders(index: number): Record<string, string>
}

function fail(why: string): never {
  throw new Error(why)
}
