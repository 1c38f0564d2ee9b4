/** Cells of a row; those of numbers stand at the right of their column. */
export type Row = readonly (string | number)[]

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g

/** Text that a terminal shows, and does not obey. */
export function plain(text: string): string {
  return text.replace(CONTROL, '?')
}

/** The rows as lines with columns two spaces apart, and without spaces at their ends. */
export function tableLines(rows: readonly Row[]): string[] {
  const widths: number[] = []
  for (const row of rows)
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, plain(String(cell)).length)
    })
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const text = plain(String(cell))
        return typeof cell === 'number' ? text.padStart(widths[column]!) : text.padEnd(widths[column]!)
      })
      .join('  ')
      .trimEnd(),
  )
}
