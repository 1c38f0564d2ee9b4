import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from '@jest/globals'
import { formatProperty } from '../../frontend/config/properties.ts'
import { ServeError } from '../../common/errors.ts'
import { callError as openInferenceError } from '../../frontend/dialects/open-inference/grpc-errors.ts'
import {
  inferenceError,
  managementError,
  sequenceError,
} from '../../frontend/dialects/torchserve/grpc-errors.ts'
import { commonError } from '../../frontend/edge/grpc/call-error.ts'
import { AccessLog } from '../../frontend/observe/logs/access-log.ts'
import { formatLogLine } from '../../frontend/observe/logs/log-line.ts'
import { renderPage } from '../../frontend/observe/metrics/page.ts'
import { labelText } from '../../frontend/observe/metrics/sample.ts'
import { MetricLog, Series } from '../../frontend/observe/metrics/series.ts'

const FORGED = 'a\nb\rc\u2028d\u0085e\u001b[2Jf'
/** What readers of logs take for the end of a line, and what a terminal obeys. */

const ENDS = /[\n\r\u0085\u2028\u2029\u001b]/

function linesOf(write: (to: { write: (line: string) => void }) => void): string[] {
  const lines: string[] = []
  write({ write: (line) => lines.push(line) })
  return lines
}

function expectOneLine(text: string): void {
  expect(text.endsWith('\n')).toBe(true)
  expect(text.slice(0, -1)).not.toMatch(ENDS)
}

describe('nothing that a client or a handler says begins a line of its own', () => {
  test.each(['name', 'unit', 'dimension', 'value', 'host', 'request id'])('in a metric log: %s', (where) => {
    const at = (place: string): string => (place === where ? FORGED : 'x')
    const [line] = linesOf((writer) => {
      const log = new MetricLog(writer)
      const spec = { name: at('name'), unit: at('unit'), kind: 'gauge' } as const
      const labels = { names: [at('dimension'), 'Hostname'], values: [at('value'), at('host')] }
      new Series(spec, labels, log).record(1, at('request id'))
      log.close()
    })
    expectOneLine(line!)
  })

  test.each(['msg', 'logger', 'thread', 'requestId', 'list'])('in a model log: %s', (where) => {
    const record = { level: 30, time: 0, msg: 'x', [where]: where === 'list' ? [FORGED] : FORGED }
    expectOneLine(formatLogLine(JSON.stringify(record)))
  })

  test.each(['method', 'url'])('in the access log: %s', (where) => {
    const request = {
      method: 'GET',
      url: '/',
      httpVersion: '1.1',
      [where]: FORGED,
    } as unknown as IncomingMessage
    const [line] = linesOf((writer) => new AccessLog(writer).rest('/peer', request, 200, 0))
    expectOneLine(line!)
  })

  test('in the access log: an rpc', () => {
    const [line] = linesOf((writer) => new AccessLog(writer).grpc('peer', `/${FORGED}`, 0, 0))
    expectOneLine(line!)
  })

  test.each([
    ['inference', inferenceError],
    ['management', managementError],
    ['Open Inference', openInferenceError],
    ['any other service', commonError],
  ])('in the message of a gRPC status: %s', (_service, toCallError) => {
    const { details } = toCallError(new ServeError('MODEL_NOT_FOUND', FORGED))
    // TorchServe puts the class of the error on a line of its own.
    expect(details.replace(/\n[\w.]+(\(\))?$/, '')).not.toMatch(ENDS)
  })

  test('in a message of StreamPredictions2', () => {
    expect(sequenceError(new ServeError('INVALID_ARGUMENT', FORGED)).message).not.toMatch(ENDS)
  })

  test('in a snapshot', () => {
    // A properties file ends lines with these two only.
    expect(formatProperty(FORGED, FORGED)).not.toMatch(/[\n\r]/)
  })

  test('on the metrics page', () => {
    const labels = labelText(['l'], ['a\nb"} 1\nforged 1'])
    const family = { name: 'm', help: 'h\nforged 1', kind: 'gauge' as const }
    const page = renderPage([{ ...family, samples: () => [{ name: 'm', labels, value: 1 }] }]).toString()
    expect(page.split('\n').filter((line) => line.startsWith('forged'))).toEqual([])
    expect(page.trimEnd().split('\n')).toHaveLength(3)
  })
})
