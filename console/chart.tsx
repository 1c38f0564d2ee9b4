import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import { timeOfDay } from './format.ts'

export interface Line {
  readonly label: string
  readonly values: (number | null)[]
}

const HEIGHT = 120
/** Seconds that a chart shows at least: of less, its axis would say the same second again and again. */
const SHORTEST = 30
/** Names of the custom properties that app.css gives colours, one for each line. */
const COLOURS = ['--line-1', '--line-2']

/** A chart over time with its legend. `times`: seconds since the epoch. `format`: a value as text. */
export function Chart(props: {
  title: string
  times: number[]
  lines: readonly Line[]
  format: (value: number) => string
}): JSX.Element {
  const { title, lines, format } = props
  const hasData = lines.some(({ values }) => values.some((value) => isThere(value) && value > 0))
  return (
    <figure>
      <figcaption>
        {title}
        <span class="legend">
          {lines.map(({ label, values }, index) => (
            <span class={`key key-${index + 1}`}>
              {label} {shown(values.at(-1), format)}
            </span>
          ))}
        </span>
      </figcaption>
      {hasData ? <Plot {...props} /> : <p class="note">No data yet.</p>}
    </figure>
  )
}

function Plot({ times, lines, format }: Parameters<typeof Chart>[0]): JSX.Element {
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
  return <div ref={place} aria-hidden="true" />
}

function shown(value: number | null | undefined, format: (value: number) => string): string {
  return isThere(value) ? format(value) : '–'
}

function optionsOf(lines: readonly Line[], format: (value: number) => string, width: number): UPlot.Options {
  const stroke = (): string => colour('--quiet')
  const grid = { stroke: () => colour('--border'), width: 1 }
  return {
    width,
    height: HEIGHT,
    padding: [8, 24, 0, 0],
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
        space: 80,
        values: (_, ticks) => ticks.map((seconds) => timeOfDay(seconds * 1000)),
      },
      { stroke, grid, size: 64, values: (_, ticks) => ticks.map(format) },
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

function isThere(value: number | null | undefined): value is number {
  return value !== null && value !== undefined
}

/** Asked for at each drawing, because the user may turn to dark while the page is open. */
function colour(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property)
}
