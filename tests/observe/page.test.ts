import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Buckets, Distribution } from '../../frontend/observe/metrics/tally.ts'
import { Families, renderPage, type PageFamily } from '../../frontend/observe/metrics/page.ts'
import { labelText } from '../../frontend/observe/metrics/sample.ts'
import { distributionSamples } from '../../frontend/observe/metrics/series.ts'
import { Exposition } from '../support/exposition.ts'

function family(name: string, samples: PageFamily['samples'] = () => []): PageFamily {
  return { name, help: 'help', kind: 'gauge', samples }
}

test('whatever labels and values hold, a scraper reads them back', () => {
  const text = fc.string({ unit: 'binary' })
  const value = fc.double({ noNaN: true })
  fc.assert(
    fc.property(fc.uniqueArray(text, { minLength: 1, maxLength: 5 }), text, value, (names, help, number) => {
      const samples = names.map((name) => ({
        name: 'some_metric',
        labels: labelText(['a', 'b'], [name, 'x']),
        value: number,
      }))
      const families = [{ name: 'some_metric', help, kind: 'counter', samples: () => samples } as const]
      const page = renderPage(families).toString()
      const read = new Exposition(page)
      expect(read.families.get('some_metric')?.type).toBe('counter')
      expect(read.samples.map(({ labels }) => labels['a'])).toEqual(names)
      for (const sample of read.samples) expect(sample.value === number).toBe(true)
    }),
  )
})

test('it is written as TorchServe writes it', () => {
  const labels = labelText(['model_name', 'hostname'], ['m', 'h'])
  const page = renderPage([
    { ...family('Requests', () => [{ name: 'Requests', labels, value: 3 }]), kind: 'counter' },
    family('Nothing'),
    family('Plain', () => [{ name: 'Plain', labels: '', value: 0.25 }]),
  ]).toString()
  expect(page).toBe(
    '# HELP Requests help\n# TYPE Requests counter\nRequests{model_name="m",hostname="h",} 3.0\n' +
      '# HELP Nothing help\n# TYPE Nothing gauge\n# HELP Plain help\n# TYPE Plain gauge\nPlain 0.25\n',
  )
})

test('thousands of lines are all on the page, in their order', () => {
  const samples = Array.from({ length: 20_000 }, (_, i) => ({ name: 'n', labels: `i="${i}",`, value: i }))
  const read = new Exposition(renderPage([family('n', () => samples)]).toString())
  expect(read.samples.map(({ value }) => value)).toEqual(samples.map(({ value }) => value))
})

test('a histogram shows cumulative buckets, their number and their sum', () => {
  const distribution = new Distribution(new Buckets(0.5, 1))
  for (const value of [0.1, 0.5, 0.7, 9]) distribution.observe(value)
  const lines = [...distributionSamples('h', 'a="b",', distribution)].map(
    ({ name, labels, value }) => `${name}{${labels}} ${value}`,
  )
  expect(lines).toEqual([
    'h_bucket{a="b",le="0.5",} 2',
    'h_bucket{a="b",le="1.0",} 3',
    'h_bucket{a="b",le="+Inf",} 4',
    'h_count{a="b",} 4',
    'h_sum{a="b",} 10.3',
  ])
})

test('names choose samples, and what has none is left out', () => {
  const distribution = new Distribution(new Buckets(1))
  const families = [
    { ...family('h', () => distributionSamples('h', '', distribution)), kind: 'histogram' as const },
    family('g', () => [{ name: 'g', labels: '', value: 1 }]),
    family('empty'),
  ]
  const read = (...names: string[]): string[] =>
    new Exposition(renderPage(families, names).toString()).samples.map(({ name }) => name)
  expect(read('g')).toEqual(['g'])
  expect(read('h_count', 'empty', 'none')).toEqual(['h_count'])
  expect(renderPage(families, ['empty']).toString()).toBe('')
})

describe('a metric that would spoil the page is refused', () => {
  test.each<[string, PageFamily, string[], RegExp]>([
    ['a name with a blank', family('a b'), [], /name is not valid in Prometheus/],
    ['a label with a dash', family('b'), ['x-y'], /label x-y is not valid/],
    ['a label of Prometheus itself', family('b'), ['__name__'], /label __name__ is not valid/],
    ['a name that is taken', family('taken'), [], /another metric has this name/],
    ['the name of a histogram’s samples', family('spread_count'), [], /another metric has this name/],
    ['the label le of a histogram', { ...family('c'), kind: 'histogram' }, ['le'], /label le is not valid/],
  ])('%s', (_what, refused, labels, why) => {
    const families = new Families()
    expect(families.add(family('taken'), ['le'])).toBeUndefined()
    expect(families.add({ ...family('spread'), kind: 'histogram' })).toBeUndefined()
    expect(families.add(refused, labels)).toMatch(why)
    expect([...families].map(({ name }) => name)).toEqual(['taken', 'spread'])
  })
})

test('a value with quotes, backslashes and line ends stays one value', () => {
  expect(labelText(['a'], ['x",b="\\\n'])).toBe('a="x\\",b=\\"\\\\\\n",')
})
