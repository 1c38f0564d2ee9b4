import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import { timeOfDay } from './format.ts'

export interface Line {
  readonly label: string
  readonly values: (number | null)[]
}

const HEIGHT = 150
/** Seconds that a chart shows at least: of less, its axis would say the same second again and again. */
const SHORTEST = 30
/** Names of the custom properties that app.css gives colours, one for each line. */
const COLOURS = ['--line-1', '--line-2']

/** A chart over time. `times`: seconds since the epoch. `format`: a value as text. */
export function Chart(props: {
  title: string
  times: number[]
  lines: readonly Line[]
  format: (value: number) => string
}): JSX.Element {
  const { title, times, lines, format } = props
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | undefined>(undefined)
  useEffect(() => {
    const chart = new UPlot(optionsOf(lines, format, place.current!.clientWidth), [
      [],
      ...lines.map(() => []),
    ])
    place.current!.append(chart.root)
    plot.current = chart
    const observer = new ResizeObserver(([entry]) => {
      const { width } = entry!.contentRect
      // 0: its view is hidden.
      if (width > 0) chart.setSize({ width, height: HEIGHT })
    })
    observer.observe(place.current!)
    return () => {
      observer.disconnect()
      chart.destroy()
    }
  }, [])
  useEffect(() => {
    plot.current?.setData([times, ...lines.map(({ values }) => values)])
  })
  const now = lines.map(({ label, values }) => `${label} ${said(values.at(-1), format)}`).join(', ')
  return (
    <figure>
      <figcaption>
        {title} <span class="now">{now}</span>
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  )
}

function said(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value)
}

function optionsOf(lines: readonly Line[], format: (value: number) => string, width: number): UPlot.Options {
  const stroke = (): string => colour('--quiet')
  const grid = { stroke: () => colour('--border'), width: 1 }
  return {
    width,
    height: HEIGHT,
    padding: [8, 32, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { range: (_, min, max) => [Math.min(min, max - SHORTEST), max] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      {
        stroke,
        grid,
        size: 32,
        space: 90,
        values: (_, ticks) => ticks.map((seconds) => timeOfDay(seconds * 1000)),
      },
      { stroke, grid, size: 70, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...lines.map(({ label }, index) => ({
        label,
        stroke: () => colour(COLOURS[index] ?? COLOURS[0]!),
        width: 2,
        points: { show: true, size: 4, filter: (plot: UPlot, at: number) => lonely(plot.data[at]!) },
      })),
    ],
  }
}

/** Values between none, which no line shows. */
function lonely(values: ArrayLike<number | null | undefined>): number[] {
  return Array.from(values, (_, at) => at).filter(
    (at) => isThere(values[at]) && !isThere(values[at - 1]) && !isThere(values[at + 1]),
  )
}

function isThere(value: number | null | undefined): boolean {
  return value !== null && value !== undefined
}

/** Asked for at each drawing, because the user may turn to dark while the page is open. */
function colour(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property)
}
