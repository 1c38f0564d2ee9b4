import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import type { Context, HandlerRequest } from 'torchserve-ts'

/** What a handler may try: each says `got`, or `stopped` with the code of the error. */
const ATTEMPTS = {
  read: ({ path }: Attempt) => readFileSync(path).byteLength > 0,
  list: ({ path }: Attempt) => Array.isArray(readdirSync(path)),
  signal: ({ pid }: Attempt) => process.kill(pid, 0),
  port: ({ port }: Attempt) => connected(port),
  env: () => ({ got: { ...process.env } }),
  headers: (_asked: Attempt, context: Context) => ({ got: Object.keys(context.requestHeaders(0)) }),
} as const

interface Attempt {
  readonly attempt: keyof typeof ATTEMPTS
  readonly path: string
  readonly pid: number
  readonly port: number
}

export async function handle([request]: HandlerRequest[], context: Context): Promise<unknown[]> {
  return [await tried(request!['body'] as Attempt, context)]
}

async function tried(asked: Attempt, context: Context): Promise<unknown> {
  try {
    const got = await ATTEMPTS[asked.attempt](asked, context)
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
