/** Lines in the colours of page.css. */
const LINES = 10

/** Of line number `index`, from 0. */
export function lineColour(index: number): string {
  return colour(`--line-${index % LINES}`)
}

/** What page.css gives a custom property. */
export function colour(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property)
}
