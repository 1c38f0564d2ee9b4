import { escapeControls } from '../../common/escape-controls.ts'

/** Cells of a row; those of numbers stand at the right of their column. */
export type Row = readonly (string | number)[]

/** The rows as lines with columns two spaces apart, and without spaces at their ends. */
export function tableLines(rows: readonly Row[]): string[] {
  const widths: number[] = []
  for (const row of rows)
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, escapeControls(String(cell)).length)
    })
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const text = escapeControls(String(cell))
        return typeof cell === 'number' ? text.padStart(widths[column]!) : text.padEnd(widths[column]!)
      })
      .join('  ')
      .trimEnd(),
  )
}
