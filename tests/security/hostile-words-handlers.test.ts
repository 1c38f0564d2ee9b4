import { expect, test } from '@jest/globals'
import { loadedHandler } from '../../backend-worker/loader.ts'
import { inEnvelope } from '../../backend-worker/envelope.ts'
import { decodeRequest } from '../../backend-worker/input.ts'
import { type ResponseHead, setHeader } from '../../backend-worker/response-head.ts'
import { Metrics } from '../../frontend/observe/metrics/metrics.ts'
import { parseMetricLine } from '../../frontend/observe/metrics/metric-line.ts'
import { joinHeaders, splitHeaders } from '../../common/headers.ts'
import { HOSTILE_WORDS } from './hostile-words.ts'

/** As the text of a metric line may say it. */
const lineWith = (word: string, name: string, type: string, dimension: string): string =>
  `[METRICS]${name}.Unit:1|#${dimension}:${word}|#type:${type}|#hostname:h,1`

test.each(HOSTILE_WORDS)('a metric line with the type %s is none', (word) => {
  expect(parseMetricLine(lineWith(word, 'a', word, 'Level'))).toBeUndefined()
})

test.each(HOSTILE_WORDS)('the metrics page stays whole with a metric and a dimension called %s', (word) => {
  const warnings: string[] = []
  const metrics = new Metrics({
    mode: 'prometheus',
    config: { ts: [], model: [{ name: 'declared', kind: 'gauge', unit: 'ms', dimensions: [word] }] },
    autoDetect: true,
    files: {},
    warn: (message) => warnings.push(message),
  })
  const model = metrics.model('m', '1')
  model.reported(parseMetricLine(lineWith(word, 'declared', 'GAUGE', 'Level'))!)
  model.reported(parseMetricLine(lineWith('v', 'declared', 'GAUGE', word))!)
  expect(warnings).toContain(`Metric declared must have the dimension ${word}; the value is dropped`)
  expect(metrics.page().body.toString()).not.toMatch(/function|native code|\[object/)
})

test.each(HOSTILE_WORDS)('there is no envelope called %s', (word) => {
  expect(() => inEnvelope(loadedHandler({ handle: () => [] }), word)).toThrow(/service_envelope/)
})

test.each(HOSTILE_WORDS)('headers and parts called %s keep their values', (word) => {
  const headers = splitHeaders(`${word}\n1\nother\n2\n`)
  expect([joinHeaders(headers), Object.getPrototypeOf(headers)]).toEqual([
    `${word}\n1\nother\n2\n`,
    Object.prototype,
  ])
  const request = decodeRequest([{ name: word, data: Buffer.from('x') }], false, () => undefined)
  expect([Object.keys(request), Object.getPrototypeOf(request)]).toEqual([[word], Object.prototype])
  const head: ResponseHead = {}
  setHeader(head, word, 'v')
  expect(Object.entries(head.headers!)).toEqual([[word, 'v']])
})
