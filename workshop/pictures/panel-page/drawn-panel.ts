import type { Panel } from '../../../tests/dashboards/panel.ts'

/** A row of the dashboard with the values of its panels. */
export interface DrawnRow {
  readonly title: string
  /** Unix times in seconds, of all values. */
  readonly times: number[]
  readonly panels: readonly DrawnPanel[]
}

export interface DrawnPanel {
  readonly panel: Panel
  readonly series: readonly DrawnSeries[]
}

export interface DrawnSeries {
  /** In the legend; of a heatmap, the upper bound of a bucket. */
  readonly label: string
  /** One for each time; null: there is none. */
  readonly values: readonly (number | null)[]
}
