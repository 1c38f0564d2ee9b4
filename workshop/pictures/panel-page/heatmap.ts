import UPlot from 'uplot'
import { axes, whole } from './chart.ts'
import { colour } from './colours.ts'
import type { DrawnPanel } from './drawn-panel.ts'
import { written } from './units.ts'

/** How many values fell into each bucket of a histogram over time: the darker, the more. */
export function heatmap({ series }: DrawnPanel, times: number[], place: HTMLElement): void {
  const cumulative = series.toSorted((one, other) => bound(one.label) - bound(other.label))
  const bounds = cumulative.map(({ label }) => bound(label))
  // Prometheus counts in each bucket what is in those below it, too.
  const counts = cumulative.map(({ values }, index) =>
    values.map((value, at) => Math.max(0, (value ?? 0) - (cumulative[index - 1]?.values[at] ?? 0))),
  )
  const most = Math.max(...counts.flat())
  const [time, values] = axes((index) => name(bounds[index - 1]))
  const options: UPlot.Options = {
    ...whole(place),
    axes: [time!, { ...values!, splits: bounds.map((_, index) => index + 1) }],
    scales: { y: { range: [0, bounds.length] } },
    series: [{}, { show: false }],
    hooks: { draw: [(plot) => cells(plot, times, counts, most)] },
  }
  new UPlot(options, [times, times.map(() => null)], place)
}

function cells(plot: UPlot, times: number[], counts: number[][], most: number): void {
  const { ctx } = plot
  ctx.save()
  ctx.fillStyle = colour('--heat')
  for (const [index, row] of counts.entries()) {
    const below = plot.valToPos(index, 'y', true)
    const above = plot.valToPos(index + 1, 'y', true)
    for (const [at, count] of row.entries()) {
      const [from, to] = [times[at], times[at + 1]]
      if (count === 0 || from === undefined || to === undefined) continue
      const left = plot.valToPos(from, 'x', true)
      ctx.globalAlpha = 0.15 + (0.85 * count) / most
      ctx.fillRect(left, above, plot.valToPos(to, 'x', true) - left, below - above)
    }
  }
  ctx.restore()
}

function bound(label: string): number {
  return label === '+Inf' ? Infinity : Number(label)
}

function name(upper: number | undefined): string {
  if (upper === undefined) return ''
  return Number.isFinite(upper) ? written(upper, 's') : '+Inf'
}
