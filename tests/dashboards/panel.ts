/** One panel of the dashboard, as far as it is looked at here. */
export interface Panel {
  readonly type: 'row' | 'stat' | 'timeseries' | 'heatmap'
  readonly title: string
  readonly gridPos: GridPos
  readonly fieldConfig?: FieldConfig
  /** Absent: it is a row. */
  readonly targets?: readonly Target[]
}

/** Place and size in a grid of 24 columns. */
export interface GridPos {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}

export interface Target {
  readonly expr: string
  /** `{{label}}` stands for the value of a label. */
  readonly legendFormat: string
}

export interface FieldConfig {
  readonly defaults: {
    readonly unit?: string
    readonly min?: number
    readonly max?: number
    /** From the lowest; the first has no value. */
    readonly thresholds?: {
      readonly steps: readonly { readonly color: string; readonly value: number | null }[]
    }
    readonly custom?: { readonly stacking?: { readonly mode: string } }
  }
}
