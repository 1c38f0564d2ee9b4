/** A value in one of the units of Grafana that the dashboard has. */
export function written(value: number, unit = 'short'): string {
  switch (unit) {
    case 's':
      return seconds(value)
    case 'percentunit':
      return `${digits(value * 100)}%`
    case 'percent':
      return `${digits(value)}%`
    case 'reqps':
      return `${digits(value)} req/s`
    case 'cps':
      return `${digits(value)} c/s`
    case 'short':
      return digits(value)
    default:
      throw new Error(
        `The unit ${unit} must be one that workshop/pictures/panel-page/units.ts knows: add it there`,
      )
  }
}

function seconds(value: number): string {
  if (value === 0) return '0 s'
  if (value < 0.001) return `${digits(value * 1e6)} µs`
  if (value < 1) return `${digits(value * 1000)} ms`
  return value < 60 ? `${digits(value)} s` : `${digits(value / 60)} min`
}

/** Three significant digits, without zeros at the end. */
function digits(value: number): string {
  return String(Number(value.toPrecision(3)))
}
