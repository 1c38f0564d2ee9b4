import { chart } from './chart.ts'
import type { DrawnPanel, DrawnRow } from './drawn-panel.ts'
import { heatmap } from './heatmap.ts'
import { colour, lineColour } from './colours.ts'
import { written } from './units.ts'

/** Shows one row of the dashboard; all that the page does. */
export function drawRow({ title, times, panels }: DrawnRow): void {
  const top = Math.min(...panels.map(({ panel }) => panel.gridPos.y))
  const board = element('section', 'board')
  document.body.replaceChildren(element('h1', '', title), board)
  for (const drawn of panels) {
    const { x, y, w, h } = drawn.panel.gridPos
    const card = element('article', drawn.panel.type)
    card.style.gridColumn = `${x + 1} / span ${w}`
    card.style.gridRow = `${y - top + 1} / span ${h}`
    const place = element('div', 'place')
    card.append(element('h2', '', drawn.panel.title))
    if (drawn.panel.type === 'stat') card.append(lastValue(drawn))
    card.append(place)
    board.append(card)
    if (drawn.panel.type === 'timeseries') card.append(legend(drawn))
    // When its size is known.
    draw(drawn, times, place)
  }
}

function draw(drawn: DrawnPanel, times: number[], place: HTMLElement): void {
  if (drawn.panel.type === 'heatmap') heatmap(drawn, times, place)
  else if (drawn.panel.type === 'timeseries') chart(drawn, times, place)
  else chart(drawn, times, place, colour('--quiet'))
}

/** The last value of a line, large, in the colour that it has reached. */
function lastValue(drawn: DrawnPanel): HTMLElement {
  const { unit, thresholds } = drawn.panel.fieldConfig?.defaults ?? {}
  const value = drawn.series[0]?.values.findLast((each) => each !== null) ?? null
  const step = thresholds?.steps.findLast(({ value: from }) => from === null || (value ?? 0) >= from)
  const text = element('strong', '', value === null ? 'No data' : written(value, unit))
  text.style.color = colour(`--${step!.color}`)
  return text
}

function legend({ series }: DrawnPanel): HTMLElement {
  const list = element('ul')
  for (const [index, { label }] of series.entries()) {
    const item = element('li', '', label)
    item.style.setProperty('--line', lineColour(index))
    list.append(item)
  }
  return list
}

function element(name: string, className = '', text = ''): HTMLElement {
  const made = document.createElement(name)
  made.className = className
  made.textContent = text
  return made
}
