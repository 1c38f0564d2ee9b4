import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { ServeError, type WireError } from '../common/errors.ts'
import type { ArchiveIdentity } from './archive-identity.ts'
import { builtModule } from './package-root.ts'
import { overLimit } from './unpack-budget.ts'
import type { UnpackTask } from './unpack-into.ts'
import { LIMIT_KEYS } from './unpack-limits.ts'
import { calledOff, Turns } from './turns.ts'

/** Result message of the thread. */
export type UnpackAnswer =
  /** Everything was unpacked. */
  { readonly identity: ArchiveIdentity } | { readonly error: WireError }

/** Archives that are unpacked in parallel; others wait. */
const THREADS = 2
const HEAP_MB = 256

const turns = new Turns(THREADS)

/**
 * Unpacks in a separate thread, so that no archive can block the server. When this settles, the thread has
 * ended and writes nothing more.
 * @param signal cancels it
 * @throws ServeError as unpackInto does; INVALID_ARCHIVE after `timeout` seconds (without the wait for a free
 *   thread); SHUTTING_DOWN when cancelled
 */
export async function unpackInThread(task: UnpackTask, signal?: AbortSignal): Promise<ArchiveIdentity> {
  await turns.take(signal)
  try {
    return await run(task, signal)
  } finally {
    turns.give()
  }
}

async function run(task: UnpackTask, signal: AbortSignal | undefined): Promise<ArchiveIdentity> {
  const thread = new Worker(entry(), {
    workerData: task,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  })
  const { timeout } = task.limits
  let stop = (): void => undefined
  let timer: NodeJS.Timeout | undefined
  try {
    const answer = await new Promise<UnpackAnswer>((resolve, reject) => {
      stop = () => reject(calledOff())
      signal?.addEventListener('abort', stop)
      if (signal?.aborted === true) stop()
      timer = setTimeout(() => reject(tookTooLong(timeout)), timeout * 1000)
      thread.once('message', resolve)
      thread.once('error', (cause) => reject(failed(cause)))
      thread.once('exit', () => reject(failed(new Error('its thread ended early'))))
    })
    if ('error' in answer) throw ServeError.fromWire(answer.error)
    return answer.identity
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
    await thread.terminate()
  }
}

/** In TypeScript sources (tests, tsx) the thread needs a loader. */
function entry(): URL {
  if (import.meta.url.endsWith('.ts')) return new URL('unpack-worker-from-source.mjs', import.meta.url)
  return pathToFileURL(builtModule('model-archiver/unpack-worker.js'))
}

function tookTooLong(seconds: number): ServeError {
  return new ServeError(
    'INVALID_ARCHIVE',
    overLimit(`The archive takes longer than ${seconds} s to unpack`, LIMIT_KEYS.timeout),
  )
}

function failed(cause: unknown): ServeError {
  const { code, message } = cause as NodeJS.ErrnoException
  if (code === 'ERR_WORKER_OUT_OF_MEMORY')
    return new ServeError(
      'INVALID_ARCHIVE',
      `The archive takes more than ${HEAP_MB} MiB of memory to unpack.`,
    )
  return new ServeError('INTERNAL', `The archive could not be unpacked: ${message}`, { cause })
}
