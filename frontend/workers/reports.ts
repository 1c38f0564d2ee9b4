import { ServeError } from '../../common/errors.ts'
import type { FromWorker } from '../../protocol/messages.ts'
import type { Job } from '../jobs/job.ts'
import { type ModelFailure, newFailure } from '../models/model-errors.ts'
import type { Model } from '../models/model.ts'
import { isMetricLine, parseMetricLine } from '../observe/metrics/metric-line.ts'
import type { WorkerEvents, WorkerOutput } from './worker-state.ts'
import { existsSync, realpathSync } from 'node:fs'
import { basename } from 'node:path'
import { notInstalled } from '../../common/texts.ts'
import { missingPackages } from '../../model-archiver/packages.ts'

type LogMessage = Extract<FromWorker, { type: 'log' }>

/** Characters of a text for the log. The worker's library sends no more, but a handler need not use it. */
const MAX_CHARACTERS = 32_768
/** Characters of what was thrown, for the client of a handler's author. */
const MAX_THROWN = 1_000

/** What a worker's processes print and log, and what went wrong in them: for the log and the metrics. */
export class Reports {
  readonly #events: Pick<WorkerEvents, 'log' | 'failed'>
  readonly #metrics: Model['metrics']
  readonly #named: (text: string) => string
  /** The last failed load, and what the log has of it. */
  #lastLoad: { failure: ModelFailure; detail: string } | undefined

  constructor(
    events: Pick<WorkerEvents, 'log' | 'failed'>,
    model: Pick<Model, 'metrics' | 'url' | 'prepared'>,
  ) {
    this.#events = events
    this.#metrics = model.metrics
    this.#named = archiveFrames(model)
  }

  /** The handler used its logger. */
  logged({ level, requestId, message }: LogMessage): void {
    const text = this.#named((requestId ? `${requestId} ${message}` : message).slice(0, MAX_CHARACTERS))
    this.#events.log(level, text, 'stdout')
  }

  /**
   * A line of a process. Python handlers report their metrics as such lines (ts/metrics in pytorch/serve).
   */
  printed(stream: WorkerOutput, line: string, prefix: string): void {
    const metric = isMetricLine(line) ? parseMetricLine(line) : undefined
    if (metric !== undefined) this.#metrics.reported(metric)
    else this.#events.log(stream === 'stderr' ? 'warn' : 'info', `${prefix}${this.#named(line)}`, stream)
  }

  requestFailed(job: Job, error: ServeError): void {
    const said = (error.detail ?? error.message).slice(0, MAX_CHARACTERS)
    const [told, ...rest] = this.#named(said).split('\n')
    const message = `${job.request.requestId} ${error.code}: ${told}`
    this.#events.failed({ message, detail: rest.join('\n'), isKnown: false })
  }

  requestTimedOut({ request, outcome, firstResponseAt, startedAt = 0 }: Job): void {
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    if (outcome === 'client_stalled') {
      const told = 'the client did not read its answer or send its next input'
      this.#events.log('info', `${request.requestId} ended after ${seconds} s: ${told}.`)
      return
    }
    const what = firstResponseAt === undefined ? 'has not answered' : 'has not ended'
    this.#events.log(
      'warn',
      `${request.requestId} timed out: the handler ${what} after ${seconds} s. Look for a loop without an end, or an await of what never comes.`,
    )
  }

  /** Returns the failure as operators and clients see it. */
  loadFailed(error: ServeError): ModelFailure {
    const { message, isPrinted } = error
    const detail = this.#named(error.detail ?? '')
    const before = this.#lastLoad?.detail === detail ? this.#lastLoad.failure : undefined
    // The id of a retry leads to the line that has the stack.
    const id = before?.reason === message ? before.id : undefined
    const failure = { ...newFailure(error), ...(id !== undefined && { id }) }
    this.#lastLoad = { failure, detail }
    this.#events.failed({
      message: `Load failed (id ${failure.id}): ${message}`,
      detail,
      isKnown: isPrinted || before !== undefined,
    })
    return failure
  }
}

/** The end of a line of a stack of V8: `(/models/m/handler.ts:3:9)`, `at file:///models/m/handler.js:3:9`. */
const PLACE = /^\s+at .*?\(?((?:file:\/\/)?\/[^()]+:\d+:\d+)\)?$/

/**
 * The same error for the author of a handler: its message also says what was thrown, and where. What a
 * handler chose for its clients stays as it is.
 */
export function tellingThrown(error: ServeError): ServeError {
  const { code, message, status, detail } = error
  if (code === 'HANDLER_FAILED' && detail === undefined)
    return new ServeError(code, `${message}: the log of the server has the traceback`, { status })
  if (code === 'HANDLER_REJECTED' || detail === undefined) return error
  const lines = detail.split('\n')
  const stack = lines.findIndex((line) => /^\s+at |^Traceback /.test(line))
  const thrown = (stack < 0 ? lines : lines.slice(0, stack)).join(' ').replace(/\s+/g, ' ').trim()
  const places = lines.flatMap((line) => PLACE.exec(line)?.[1] ?? [])
  const place = places.find((each) => !each.includes('/node_modules/')) ?? places[0]
  const what = thrown.startsWith(message) ? thrown : `${message.replace(/\.$/, '')}: ${thrown}`
  const where = place === undefined ? '' : ` (${place.replace('file://', '')})`
  return new ServeError(code, `${what.slice(0, MAX_THROWN)}${where}`, {
    status,
    detail,
    cause: error.cause,
  })
}

/** A line of a stack: of V8 (`at handle (file:///...`), or of Python (`File "/...", line 3`). */
const FRAME = /^\s*(at\s|File ")/

/**
 * Names the files of an archive in stack traces as its author knows them, `words.mar/handler.ts:3:9`, where a
 * process sees the temporary folder that it was unpacked into. Other lines, and models that are folders of
 * their own, stay as they are.
 */
export function archiveFrames({ url, prepared }: Pick<Model, 'url' | 'prepared'>): (text: string) => string {
  if (prepared.archive === undefined) return (text) => text
  const shown = `${basename(url.replace(/[?#].*$/, ''))}/`
  const { modelDir } = prepared
  // Node tells of a module by the path that links lead to.
  const folders = [...new Set([modelDir, existsSync(modelDir) ? realpathSync(modelDir) : modelDir])]
  const places = folders.flatMap((folder) => [`file://${folder}/`, `${folder}/`])
  const inFrame = (line: string): string =>
    FRAME.test(line) ? places.reduce((told, place) => told.replaceAll(place, () => shown), line) : line
  return (text) =>
    folders.some((folder) => text.includes(folder)) ? text.split('\n').map(inFrame).join('\n') : text
}

/**
 * Node tells of the first package that is missing. This names all of them, so that one command installs them.
 * @param error why a handler did not load
 * @param handlerPath its module; undefined: it has none
 * @returns the error itself if it is another one, or if only that package is missing
 */
export async function withAllMissing(
  error: ServeError,
  handlerPath: string | undefined,
): Promise<ServeError> {
  if (handlerPath === undefined || error.code !== 'WORKER_START_FAILED' || error.absent === undefined)
    return error
  const names = await missingPackages(handlerPath).catch(() => [])
  if (names.length < 2) return error
  const { code, detail, publicCause } = error
  return new ServeError(code, notInstalled(names), {
    cause: error,
    ...(detail !== undefined && { detail }),
    ...(publicCause !== undefined && { publicCause }),
  })
}
