import { beforeAll, describe, expect, test } from '@jest/globals'
import { DefectiveGrpc } from './defective/grpc.ts'
import { DefectiveHttp } from './defective/http.ts'
import type { Defect } from './defective/runs.ts'
import { POINTS } from './points.ts'
import { report } from './report.ts'

const MODELS = { model: 'count', limited: 'limited', ranked: 'ranked' }

const UNKNOWN = '1 an unknown model is refused with a status, not in the stream'
const BEFORE = '1 a failure before the first item is a status'
const EACH = '2 every item arrives when it is made, as an item of its own'
const AFTER = '3 a failure after the first item looks different from the end'
const WHOLE = '3 a failure after some items leaves nothing of a whole answer'
const LEAVES = '4 the handler stops when the client leaves'
const STALLED = '5 a client that does not read holds its own handler back'
const TOGETHER = '5 eight streams of one model progress together'
const FIRST = '6 the limit on the first response is its own'
const GAP = '6 the limit on a gap is its own'
const TOTAL = '6 the limit on the whole request is its own'
const HEADERS = '7 never compressed, Cache-Control no-cache, X-Accel-Buffering no'
const RANKS = '8 of a group of ranks one sends'

/** The points that each server lacks. */
const ROWS: [what: Defect | 'lacks nothing', lacks: string[]][] = [
  ['lacks nothing', []],
  ['tells of failures only in the stream', [UNKNOWN, BEFORE, FIRST]],
  ['keeps all items until the end', [EACH, AFTER, STALLED, GAP]],
  ['joins items', [EACH, AFTER, TOGETHER, GAP, RANKS]],
  ['ends a failure as if it were the end', [AFTER, GAP, TOTAL]],
  ['does not notice that a client leaves', [LEAVES]],
  ['does not wait for a slow reader', [STALLED]],
  ['answers one request at a time', [STALLED, TOGETHER]],
  ['has no time limits', [FIRST, GAP, TOTAL]],
  ['has one time limit for all', [GAP, TOTAL]],
  ['lets every rank send', [RANKS]],
]

type Start = (defect?: Defect) => Promise<DefectiveHttp | DefectiveGrpc>

/**
 * The points that a server lacks, as the report names them. A correct server is asked for all points. A
 * defective one is asked for those that it lacks and one that it keeps, because its other results depend on
 * timing and dialect.
 */
async function lacking(start: Start, what: Defect | 'lacks nothing', lacks: string[]): Promise<string[]> {
  const running = await start(what === 'lacks nothing' ? undefined : what)
  const lines: string[] = []
  const asked = [...lacks, lacks.includes(BEFORE) ? LEAVES : BEFORE]
  const points = POINTS.filter(({ name }) => lacks.length === 0 || asked.includes(name))
  const { passed, failed } = await report([running.dialect], MODELS, (line) => lines.push(line), points)
  await running.close()
  const lacking = lines.filter((line) => line.startsWith('LACKS'))
  expect([lines.length, lacking.length]).toEqual([passed + failed, failed])
  const beginning = `LACKS   ${running.dialect.name}: `
  return lacking.map((line) => POINTS.find(({ name }) => line.startsWith(`${beginning}${name}: `))!.name)
}

const WHOLE_ROWS: typeof ROWS = [
  ['lacks nothing', []],
  ['ends a failure as if it were the end', [WHOLE]],
  ['does not notice that a client leaves', [LEAVES]],
  ['has no time limits', [FIRST]],
]

const SERVERS: [protocol: string, start: Start, rows: typeof ROWS][] = [
  ['REST', (defect) => DefectiveHttp.start(defect), [...ROWS, ['compresses', [HEADERS]]]],
  ['gRPC', (defect) => DefectiveGrpc.start(defect), ROWS],
  ['REST with whole answers', (defect) => DefectiveHttp.start(defect, 'V2 infer'), WHOLE_ROWS],
]

/** In parallel, because the tests mostly wait. */
const reports = new Map<string, string[]>()

beforeAll(async () => {
  const rows = SERVERS.flatMap(([protocol, start, list]) =>
    list.map(async ([what, lacks]) => reports.set(`${protocol} ${what}`, await lacking(start, what, lacks))),
  )
  await Promise.all(rows)
})

describe.each(SERVERS)('the report of a server over %s that', (protocol, _start, rows) => {
  test.each(rows)('%s names what is missing', (what, lacks) => {
    expect(reports.get(`${protocol} ${what}`)).toEqual(lacks)
  })
})

test('every point is missing somewhere', () => {
  const missed = new Set([...reports.values()].flat())
  expect([...missed].sort()).toEqual(POINTS.map(({ name }) => name).sort())
})
