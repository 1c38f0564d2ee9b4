import { durationText } from '../../common/duration.ts'
import type { OpenRequest } from '../../common/server-events.ts'
import { escapeControls } from '../../common/escape-controls.ts'
import type { ServedModel } from '../server-api.ts'
import { sizeText } from './download-progress.ts'
import { headOf, type ShownServer } from './shown-servers.ts'
import { type Row, tableLines } from './table.ts'

const MODELS: Row = ['MODEL', 'VERSION', 'WORKER', 'STATE', 'PID', 'REQUESTS', 'QUEUE', 'RESTARTS', 'MEMORY']
const REQUESTS: Row = [
  'MODEL',
  'API',
  'CLIENT',
  'KEY',
  'AGE',
  'ITEMS',
  'BYTES',
  'FIRST',
  'GAP',
  'WAITS FOR',
  'ID',
]
/** Characters of a name in the list of requests, some of which callers choose; an id has 36. */
const MAX_NAME = 40

/**
 * Servers with their models and workers, and below them their open requests, the oldest first.
 * @param height lines that there is room for, shared by the servers; undefined: as many as there are
 */
export function topPage(servers: readonly ShownServer[], height = Infinity): string[] {
  if (servers.length === 0) return ['TorchServe-TS is not currently running.']
  const overviews = servers.map(overviewLines)
  let room = height - overviews.reduce((sum, lines) => sum + lines.length, 0)
  return servers.flatMap((server, index) => {
    const requests = requestLines(server, Math.floor(room / (servers.length - index)))
    room -= requests.length
    return [...overviews[index]!, ...requests]
  })
}

function overviewLines(server: ShownServer): string[] {
  const { openRequests, models = [] } = server
  const lines = [escapeControls(headOf(server))]
  if (openRequests === undefined) return lines
  const queued = models.reduce((sum, { jobQueueStatus }) => sum + jobQueueStatus.pendingRequests, 0)
  lines.push(`  ${openRequests} open ${openRequests === 1 ? 'request' : 'requests'}, ${queued} in the queue`)
  if (models.length === 0) return [...lines, '  No models']
  return [...lines, ...indented([MODELS, ...models.flatMap(modelRows)])]
}

function modelRows({ modelName, modelVersion, jobQueueStatus, workers, failure }: ServedModel): Row[] {
  const { pendingRequests, remainingCapacity } = jobQueueStatus
  const queue = `${pendingRequests}/${pendingRequests + remainingCapacity}`
  const state = failure === undefined ? '' : 'cannot serve'
  return [
    [modelName, modelVersion, '', state, '', '', queue],
    ...workers.map(({ id, state, pid, inFlight, restarts, memoryUsage }): Row => [
      '',
      '',
      id,
      state,
      pid > 0 ? pid : '',
      inFlight,
      '',
      restarts,
      memoryUsage > 0 ? `${Math.round(memoryUsage / 1e6)} MB` : '',
    ]),
  ]
}

/** A blank line, the head, the rows that fit, and how many requests there are beyond them. */
function requestLines({ requests = [], openRequests = 0 }: ShownServer, room: number): string[] {
  const most = Math.max(0, room - 2)
  const shown =
    openRequests <= Math.min(most, requests.length) ? requests : requests.slice(0, Math.max(0, most - 1))
  if (shown.length === 0) return []
  const more = openRequests - shown.length
  return [
    '',
    ...indented([REQUESTS, ...shown.map(requestRow)]),
    ...(more > 0 ? [`  … and ${more} more`] : []),
  ]
}

function requestRow(request: OpenRequest): Row {
  const { modelName, modelVersion = '', dialect, client, key = '', items, bytes, waitsFor, id } = request
  return [
    named(`${modelName} ${modelVersion}`.trim()),
    dialect,
    named(client),
    named(key),
    durationText(request.ageMs),
    items,
    sizeText(bytes),
    request.firstResponseMs === undefined ? '' : durationText(request.firstResponseMs),
    request.lastGapMs === undefined ? '' : durationText(request.lastGapMs),
    waitsFor,
    named(id),
  ]
}

function named(text: string): string {
  const shown = escapeControls(text)
  return shown.length > MAX_NAME ? `${shown.slice(0, MAX_NAME - 1)}…` : shown
}

function indented(rows: readonly Row[]): string[] {
  return tableLines(rows).map((line) => `  ${line}`)
}
