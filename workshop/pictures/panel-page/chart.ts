import UPlot from 'uplot'
import { colour, lineColour } from './colours.ts'
import type { DrawnPanel } from './drawn-panel.ts'
import { written } from './units.ts'

/** Of the area below a line, as two digits of a colour: the dashboard asks for 5 %. */
const LINE_FILL = '0d'
const STACK_FILL = '59'

/**
 * Lines over time.
 * @param spark of a line without axes, its colour; absent: it has axes and the colours of its lines
 */
export function chart(
  { panel, series }: DrawnPanel,
  times: number[],
  place: HTMLElement,
  spark?: string,
): void {
  const { unit, min, max, custom } = panel.fieldConfig?.defaults ?? {}
  const isStacked = custom?.stacking?.mode === 'normal'
  const values = series.map((each) => [...each.values])
  if (isStacked) stack(values)
  const fill = isStacked ? STACK_FILL : LINE_FILL
  const options: UPlot.Options = {
    ...whole(place),
    axes: spark === undefined ? axes((value) => written(value, unit)) : [{ show: false }, { show: false }],
    scales: { y: { range: (_, low, high) => [min ?? low, max ?? top(high)] } },
    series: [
      {},
      ...series.map(({ label }, index) => ({
        label,
        stroke: spark ?? lineColour(index),
        fill: `${spark ?? lineColour(index)}${spark === undefined ? fill : STACK_FILL}`,
        width: 1.5,
        points: { show: false },
      })),
    ],
    bands: isStacked ? series.slice(1).map((_, index) => ({ series: [index + 2, index + 1] })) : [],
  }
  new UPlot(options, [times, ...values], place)
}

/** What all drawings have. */
export function whole(place: HTMLElement): Omit<UPlot.Options, 'series'> {
  return {
    width: place.clientWidth,
    height: place.clientHeight,
    legend: { show: false },
    cursor: { show: false },
    padding: [4, 8, 0, 0],
  }
}

/** Of time, and of values that `text` writes. */
export function axes(text: (value: number) => string): UPlot.Axis[] {
  const both = {
    stroke: colour('--quiet'),
    grid: { stroke: colour('--grid'), width: 1 },
    font: '11px sans-serif',
  }
  return [
    { ...both, size: 26, space: 80, values: (_, ticks) => ticks.map(timeOfDay) },
    { ...both, size: 62, space: 26, values: (_, ticks) => ticks.map(text) },
  ]
}

/** Each line on top of those before it. */
function stack(lines: (number | null)[][]): void {
  for (const [index, line] of lines.entries())
    for (const [at, value] of line.entries()) line[at] = (value ?? 0) + (lines[index - 1]?.[at] ?? 0)
}

function top(high: number): number {
  return high > 0 ? high * 1.1 : 1
}

function timeOfDay(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString('en-GB')
}
