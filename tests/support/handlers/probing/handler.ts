import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import type { HandlerRequest } from 'torchserve-ts'

/** What a handler may try: each says `got`, or `stopped` with the code of the error. */
const ATTEMPTS = {
  read: ({ path }: Attempt) => readFileSync(path).byteLength > 0,
  list: ({ path }: Attempt) => Array.isArray(readdirSync(path)),
  signal: ({ pid }: Attempt) => process.kill(pid, 0),
  port: ({ port }: Attempt) => connected(port),
  env: () => ({ got: { ...process.env } }),
} as const

interface Attempt {
  readonly attempt: keyof typeof ATTEMPTS
  readonly path: string
  readonly pid: number
  readonly port: number
}

export async function handle(requests: HandlerRequest[]): Promise<unknown[]> {
  return Promise.all(requests.map((request) => tried(request['body'] as Attempt)))
}

async function tried(asked: Attempt): Promise<unknown> {
  try {
    const got = await ATTEMPTS[asked.attempt](asked)
    return typeof got === 'object' ? got : { got }
  } catch (error) {
    return { stopped: (error as NodeJS.ErrnoException).code }
  }
}

async function connected(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    return true
  } finally {
    socket.destroy()
  }
}
