/** A plot as SVG text. It follows the reader's light or dark theme. */

export interface Axis {
  /** With its unit. */
  label: string
  /** Names of values: `10000` becomes `10,000`. Default: digits in groups. */
  name?: (value: number) => string
}

export interface Line {
  name: string
  points: readonly { x: number; y: number }[]
}

/** Both scales are logarithmic: equal steps are equal factors, and a cost that does not grow is level. */
export interface Panel {
  title: string
  x: Axis
  y: Axis
  lines: readonly Line[]
}

const WIDTH = 440
const HEIGHT = 320
const LEFT = 72
const RIGHT = 20
const TOP = 66
const BOTTOM = 56
const STYLE = `
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.paper { fill: #ffffff } .grid { stroke: #d8dee4 } .axis { stroke: #59636e }
.line { fill: none; stroke-width: 2 }
.c0 { stroke: #0969da } .c1 { stroke: #bc4c00 } .c2 { stroke: #1a7f37 } .c3 { stroke: #8250df }
.dot.c0 { fill: #0969da } .dot.c1 { fill: #bc4c00 } .dot.c2 { fill: #1a7f37 } .dot.c3 { fill: #8250df }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .paper { fill: #0d1117 } .grid { stroke: #30363d } .axis { stroke: #8b949e }
  .c0 { stroke: #58a6ff } .c1 { stroke: #f0883e } .c2 { stroke: #3fb950 } .c3 { stroke: #bc8cff }
  .dot.c0 { fill: #58a6ff } .dot.c1 { fill: #f0883e } .dot.c2 { fill: #3fb950 } .dot.c3 { fill: #bc8cff }
}`

/** The panels side by side. */
export function drawPlot(title: string, panels: readonly Panel[]): string {
  const width = WIDTH * panels.length
  const inner = panels.map((panel, i) => `<g transform="translate(${i * WIDTH} 0)">${draw(panel)}</g>`)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${HEIGHT}" width="${width}" height="${HEIGHT}" role="img">
<title>${escape(title)}</title>
<style>${STYLE}
</style>
<rect class="paper" width="${width}" height="${HEIGHT}"/>
${inner.join('\n')}
</svg>
`
}

function draw({ title, x, y, lines }: Panel): string {
  const points = lines.flatMap((line) => line.points)
  const sizes = [...new Set(points.map((point) => point.x))]
  const across = scale(Math.min(...sizes), Math.max(...sizes), LEFT + 12, WIDTH - RIGHT - 12)
  const ticks = ticksAround(points.map((point) => point.y))
  const up = scale(ticks[0]!, ticks.at(-1)!, HEIGHT - BOTTOM, TOP)
  return [
    text(LEFT, 20, title, 'start', 'title'),
    ...lines.flatMap((line, i) => legend(line.name, i, lines.length)),
    ...ticks.flatMap((value) => tickUp(up(value), nameOf(y, value))),
    ...sizes.flatMap((value) => tickAcross(across(value), nameOf(x, value))),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x.label, 'middle'),
    `<g transform="translate(16 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)">${text(0, 0, y.label, 'middle')}</g>`,
    ...lines.flatMap((line, i) =>
      drawLine(line.points.map((point): [number, number] => [across(point.x), up(point.y)]), i),
    ), // prettier-ignore
  ].join('\n')
}

function scale(least: number, most: number, from: number, to: number): (value: number) => number {
  return (value) => round(from + (Math.log(value / least) / Math.log(most / least)) * (to - from))
}

/** Powers of ten around the values; between few of them, also their doubles and fives. */
function ticksAround(values: readonly number[]): number[] {
  const least = Math.floor(Math.log10(Math.min(...values)))
  const most = Math.max(least + 1, Math.ceil(Math.log10(Math.max(...values))))
  const steps = most - least > 2 ? [1] : [1, 2, 5]
  const ticks = Array.from({ length: most - least }, (_, i) => steps.map((step) => step * 10 ** (least + i)))
  return [...ticks.flat(), 10 ** most]
}

function legend(name: string, index: number, count: number): string[] {
  if (count === 1) return [text(LEFT, 40, name, 'start')]
  const at = LEFT + index * 116
  return [
    `<line class="line c${index}" x1="${at}" y1="36" x2="${at + 18}" y2="36"/>`,
    text(at + 24, 40, name, 'start'),
  ]
}

function drawLine(places: readonly (readonly [number, number])[], index: number): string[] {
  const path = places.map(([x, y]) => `${x},${y}`).join(' ')
  return [
    `<polyline class="line c${index}" points="${path}"/>`,
    ...places.map(([x, y]) => `<circle class="dot c${index}" cx="${x}" cy="${y}" r="3"/>`),
  ]
}

function tickUp(y: number, name: string): string[] {
  return [
    `<line class="grid" x1="${LEFT}" y1="${y}" x2="${WIDTH - RIGHT}" y2="${y}"/>`,
    text(LEFT - 8, y + 4, name, 'end'),
  ]
}

function tickAcross(x: number, name: string): string[] {
  const bottom = HEIGHT - BOTTOM
  return [
    `<line class="axis" x1="${x}" y1="${bottom}" x2="${x}" y2="${bottom + 5}"/>`,
    text(x, bottom + 20, name, 'middle'),
  ]
}

function text(x: number, y: number, content: string, anchor: string, style = ''): string {
  const marked = style === '' ? '' : ` class="${style}"`
  return `<text${marked} x="${x}" y="${y}" text-anchor="${anchor}">${escape(content)}</text>`
}

function nameOf(axis: Axis, value: number): string {
  return (
    axis.name?.(value) ?? Number(value.toPrecision(6)).toLocaleString('en-US', { maximumFractionDigits: 6 })
  )
}

function escape(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
