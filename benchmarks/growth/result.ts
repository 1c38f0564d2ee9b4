import type { Figure } from '../measures/figure.ts'
import type { Curve } from './curve.ts'
import type { Axis, Panel } from './plot.ts'

/** What one measure found. */
export interface Result {
  /** The raw data by name. */
  curves: Readonly<Record<string, Curve | readonly object[]>>
  figures: Figure[]
  /** Plots by the names of their files, without extension. */
  plots: { file: string; title: string; panels: Panel[] }[]
}

/** CPU time beside latency. @param what `request` or `chunk` */
export function costPanels(what: string, sizes: string, curve: Curve, name?: Axis['name']): Panel[] {
  const line = (label: string, of: 'cpu' | 'p50' | 'p99') => ({
    name: label,
    points: curve.map((point) => ({ x: point.size, y: point[of] })),
  })
  const x = { label: sizes, name }
  return [
    {
      title: `CPU time per ${what}`,
      x,
      y: { label: 'µs' },
      lines: [line('frontend and workers', 'cpu')],
    },
    {
      title: `Latency of a ${what}`,
      x,
      y: { label: 'ms' },
      lines: [line('p50', 'p50'), line('p99', 'p99')],
    },
  ]
}

/** `1 KB` */
export function bytesName(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${bytes / 1024} KB`
  return `${bytes / 1024 / 1024} MB`
}
