import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { isMetricLine, parseMetricLine } from '../../frontend/observe/metrics/metric-line.ts'
import { cpuMs } from '../support/cpu.ts'

test('a line of a Python worker is a metric', () => {
  const line =
    '[METRICS]HandlerTime.Milliseconds:12.5|#ModelName:m,Level:Model|#type:GAUGE|#hostname:h,1700000000,id-1,id-2'
  expect(isMetricLine(line)).toBe(true)
  expect(parseMetricLine(line)).toEqual({
    type: 'metric',
    name: 'HandlerTime',
    kind: 'gauge',
    unit: 'Milliseconds',
    dimensions: { ModelName: 'm', Level: 'Model' },
    values: [12.5],
    requestIds: ['id-1,id-2'],
  })
})

test('without a type it is a counter, without ids it has none, and C++ workers put a word before it', () => {
  expect(parseMetricLine('INFO > [METRICS]My Count.Count:3|#|#hostname:h,1')).toMatchObject({
    name: 'My Count',
    kind: 'counter',
    dimensions: {},
    values: [3],
    requestIds: [''],
  })
})

test.each([
  '[METRICS]NoUnit:1|#|#hostname:h,1',
  '[METRICS]A.B:x|#|#hostname:h,1',
  '[METRICS]A.B:1,2|#|#hostname:h,1',
  '[METRICS]A.B:1|#|#type:TIMER|#hostname:h,1',
  '[METRICS]A.B:1|#|#hostname:h',
])('%s is none', (line) => {
  expect(parseMetricLine(line)).toBeUndefined()
})

test('what is written is read back; anything else is no defect', () => {
  const word = fc.stringMatching(/^\w{1,12}$/)
  const pairs = fc.dictionary(word, word, { noNullPrototype: true })
  const value = fc.double({ min: 0, max: 1e6, noNaN: true }).filter((each) => /^[\d.]+$/.test(String(each)))
  fc.assert(
    fc.property(word, word, value, pairs, (name, unit, number, dimensions) => {
      const text = Object.entries(dimensions).map(([key, each]) => `${key}:${each}`)
      const line = `[METRICS]${name}.${unit}:${number}|#${text.join(',')}|#type:HISTOGRAM|#hostname:h,1`
      expect(parseMetricLine(line)).toMatchObject({
        name,
        unit,
        kind: 'histogram',
        values: [number],
        dimensions,
      })
    }),
  )
  fc.assert(fc.property(fc.string(), (rest) => void parseMetricLine(`[METRICS]${rest}`)))
})

test('a long line takes no time', () => {
  const ms = cpuMs(() => {
    for (const part of [' ', 'a', '.', ',', '|#', ':']) parseMetricLine(`[METRICS]${part.repeat(8000)}`)
  })
  expect(ms).toBeLessThan(1000)
})
