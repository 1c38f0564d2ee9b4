import type { BuildFailure, BuildOptions, BuildResult, formatMessages, Message } from 'esbuild'
import type { ChildProcess } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { basename } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { within } from '../common/timer.ts'
import { ServeError } from '../common/errors.ts'

type Result = BuildResult<{ metafile: true }>

let running = 0
/** Why the process of esbuild could not be started the last time. */
let unstarted: Error | undefined

// Without descriptors esbuild throws before it listens for this error, which nobody else could catch.
subscribe('child_process', (message) => {
  const { process: child } = message as { process: ChildProcess }
  child.once('error', (error) => {
    if (child.spawnargs.some((word) => word.startsWith('--service='))) unstarted = error
  })
})

/** Errors of a build that are shown in full. */
const MAX_SHOWN = 10
/** Milliseconds of a build. It takes seconds at most, unless a file of it is a pipe that nobody writes to. */
const LIMIT_MS = 120_000

/**
 * Runs esbuild, loaded on demand, and stops its process when nobody uses it.
 * @throws ServeError INVALID_MODEL with the first error in one line; its detail has all of them with their
 *   lines of code, its cause is the BuildFailure. INTERNAL when esbuild's process cannot run
 */
export async function runEsbuild(
  entry: string,
  outFile: string,
  options: BuildOptions,
  limitMs = LIMIT_MS,
): Promise<Result> {
  const esbuild = await import('esbuild')
  running += 1
  unstarted = undefined
  try {
    const build = esbuild.build({ ...common(entry, outFile, options.tsconfig), ...options, metafile: true })
    return await inTime(build, limitMs)
  } catch (error) {
    await nextTurn()
    throw bundleError(entry, unstarted ?? error, await describeBuild(esbuild.formatMessages, error))
  } finally {
    running -= 1
    if (running === 0) await esbuild.stop()
  }
}

/** One that takes longer goes on, until nobody uses the process of esbuild. */
async function inTime(build: Promise<Result>, ms: number): Promise<Result> {
  let result: Result | undefined
  await within(
    ms,
    build.then((each) => (result = each)),
  )
  if (result !== undefined) return result
  throw new Error(`it took longer than ${ms / 1000} s; one of its files may be a pipe or a device`)
}

/** @param tsconfig undefined: esbuild looks for none */
function common(entry: string, outFile: string, tsconfig: string | undefined): BuildOptions {
  return {
    entryPoints: [entry],
    outfile: outFile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    charset: 'utf8',
    logLevel: 'silent',
    ...(tsconfig === undefined && { tsconfigRaw: '{}' }),
  }
}

/** Messages of a failed build; empty for other errors. */
export function buildMessages(error: unknown): readonly Message[] {
  const cause = error instanceof ServeError ? error.cause : error
  return (cause as Partial<BuildFailure> | undefined)?.errors ?? []
}

export function formatMessage(message: Message): string {
  const { location, text } = message
  return location === null ? text : `${location.file}:${location.line}: ${text}`
}

/** As esbuild prints them. Undefined for errors of other kinds. */
async function describeBuild(format: typeof formatMessages, error: unknown): Promise<string | undefined> {
  const messages = [...buildMessages(error)]
  if (messages.length === 0) return undefined
  const shown = await format(messages.slice(0, MAX_SHOWN), { kind: 'error' })
  return shown.map((text) => text.trimEnd()).join('\n\n')
}

function bundleError(entry: string, error: unknown, detail: string | undefined): ServeError {
  const [first] = buildMessages(error)
  const text = first === undefined ? (error as Error).message : formatMessage(first)
  const [line] = text.split('\n')
  const code = error === unstarted || text.startsWith('The service ') ? 'INTERNAL' : 'INVALID_MODEL'
  return new ServeError(code, `Handler ${basename(entry)} cannot be bundled: ${line}`, {
    cause: error,
    detail,
  })
}
