import type {
  FailedOverview,
  ModelOverview,
  OverviewEvent,
  RequestErrors,
  WorkerOverview,
} from '../common/server-events.ts'
import { number } from './format.ts'
import { type Activity, failuresOf, type History } from './history.ts'

/** How urgent it is: `bad` and `warn` need somebody's attention. */
export type Level = 'bad' | 'warn' | 'busy' | 'good' | 'off'

/** How a model does, in words. */
export interface Health {
  readonly level: Level
  /** A word or two: `ready`, `failing`. */
  readonly label: string
  /** What is wrong, in one line; undefined: nothing is. */
  readonly cause: string | undefined
  /** What the log is searched for to learn more; undefined: nothing is wrong. */
  readonly logText?: string | undefined
}

/** A model with what it did lately. */
export interface Watched {
  readonly model: ModelOverview
  readonly health: Health
  readonly recent: Activity | undefined
}

/** Requests that must fail in a row until a model counts as failing. */
const FAILS_IN_A_ROW = 3
/** The share of failed requests that is an alarm. */
const ALARMING_SHARE = 0.1
/** The most urgent first. */
const PROBLEMS = ['failed to load', 'failing', 'queue full', 'some fail', 'last failed', 'ready']

/** All models, those with problems first. */
export function watchedModels({ models }: OverviewEvent, history: History): Watched[] {
  const watched = models.map((model) => {
    const recent = history.recent(model)
    return { model, recent, health: healthOf(model, recent) }
  })
  const urgency = (each: Watched): number =>
    isProblem(each) ? PROBLEMS.indexOf(each.health.label) : PROBLEMS.length
  return watched.sort((one, other) => urgency(one) - urgency(other))
}

function isProblem({ health: { level } }: Watched): boolean {
  return level === 'bad' || level === 'warn'
}

/** What needs somebody's attention, the most urgent first. */
interface Problem {
  readonly model: ModelOverview | FailedOverview
  readonly health: Health
}

/** @param watched the registered models */
export function problemsOf({ failed }: OverviewEvent, watched: readonly Watched[]): Problem[] {
  return [...failed.map((model) => ({ model, health: healthOfFailed(model) })), ...watched.filter(isProblem)]
}

/** How a model does that could not be loaded at the start. */
export function healthOfFailed({ failure: { id, reason } }: FailedOverview): Health {
  return { level: 'bad', label: 'failed to load', cause: reason, logText: id }
}

/** @param recent what it did in the last minute */
export function healthOf(model: ModelOverview, recent: Activity | undefined): Health {
  const { state, failure, failedInARow, queue, workers, minWorkers } = model
  if (state === 'failed')
    return { level: 'bad', label: 'failed to load', cause: failure?.reason, logText: failure?.id }
  const error = lastError(model)
  const last = error === undefined ? '' : `${error.code}${error.reason && `, ${error.reason}`}`
  const why = last && (model.errors.length > 1 ? `, the last with ${last}` : `: ${last}`)
  const logText = error?.requestId
  if (failedInARow >= FAILS_IN_A_ROW)
    return { level: 'bad', label: 'failing', cause: `${inARow(model)} failed${why}`, logText }
  if (queue.room === 0 && queue.waiting > 0)
    return {
      level: 'bad',
      label: 'queue full',
      cause: `${number(queue.waiting)} requests wait, and new ones are refused with 503`,
    }
  if (recent !== undefined && recent.failures > 0) {
    const share = recent.failures / recent.requests
    const cause = `${number(recent.failures)} of ${number(recent.requests)} requests failed in the last minute${why}`
    return { level: share < ALARMING_SHARE ? 'warn' : 'bad', label: 'some fail', cause, logText }
  }
  if (failedInARow > 0)
    return { level: 'warn', label: 'last failed', cause: `${inARow(model)} failed${why}`, logText }
  const ready = readyWorkers(model)
  if (state === 'ready' && ready < Math.min(minWorkers, workers.length)) {
    const exit = workers.find((each) => !isUp(each))?.lastExit
    const cause = `${ready} of ${minWorkers} workers are ready${exit === undefined ? '' : `: ${exit.cause}`}`
    return { level: exit === undefined ? 'busy' : 'warn', label: 'ready', cause }
  }
  if (state === 'ready') return { level: 'good', label: 'ready', cause: undefined }
  if (state === 'loading') return { level: 'busy', label: 'loading', cause: undefined }
  return state === 'waking'
    ? { level: 'off', label: 'asleep', cause: 'The next request starts a worker' }
    : { level: 'off', label: 'stopped', cause: 'It has no workers: open the row to start some' }
}

export function readyWorkers({ workers }: ModelOverview): number {
  return workers.filter(isUp).length
}

/** `busy`: all of its slots are in use. */
function isUp({ state }: WorkerOverview): boolean {
  return state === 'ready' || state === 'busy'
}

/** The error of the last request that failed. */
function lastError({ errors }: ModelOverview): RequestErrors | undefined {
  return errors.toSorted((one, other) => other.at.localeCompare(one.at))[0]
}

function inARow(model: ModelOverview): string {
  const { failedInARow, counts } = model
  if (failedInARow === 1) return 'The last request'
  const everyOne = failedInARow === failuresOf(model) && counts.unary.finished + counts.stream.finished === 0
  return `${everyOne ? 'All' : 'The last'} ${number(failedInARow)} requests`
}
