import { setOwn } from '../../../common/json.ts'

/** One line of the page. */
export interface Sample {
  name: string
  /** See `labelText`. */
  labels: string
  value: number
}

/** Labels as the page has them: `a="1",b="2",`. */
export function labelText(names: readonly string[], values: readonly string[]): string {
  return names.map((name, index) => `${name}="${escapeLabel(values[index] ?? '')}",`).join('')
}

/** The inverse of `labelText`. */
export function splitLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const [, name, value] of text.matchAll(/([^=,]+)="((?:[^"\\]|\\.)*)",/gs)) {
    const plain = value!.replace(/\\(.)/gs, (_, letter: string) => (letter === 'n' ? '\n' : letter))
    setOwn(labels, name!, plain)
  }
  return labels
}

/** A number as Java writes doubles, but with an exponent only where one is needed. */
export function number(value: number): string {
  if (Number.isInteger(value)) return Math.abs(value) < 1e21 ? `${value}.0` : String(value)
  if (Number.isFinite(value)) return String(value)
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (letter) => (letter === '\n' ? '\\n' : `\\${letter}`))
}
