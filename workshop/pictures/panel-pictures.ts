/**
 * The second part of `npm run screenshots`: a real Prometheus reads two servers under load and faults, and
 * every panel of deploy/grafana is drawn from what it answers, into docs/pictures, light and dark. Needs
 * Chromium and `prometheus`.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { build } from 'esbuild'
import { chromium, type Browser } from 'playwright-core'
import { panels } from '../../tests/dashboards/files.ts'
import type { Panel, Target } from '../../tests/dashboards/panel.ts'
import type { Prometheus } from '../../tests/dashboards/prometheus.ts'
import { Scene } from '../../tests/dashboards/scene.ts'
import { chromiumPath } from './chromium.ts'
import type { DrawnPanel, DrawnRow, DrawnSeries } from './panel-page/drawn-panel.ts'
import { takePicture, THEMES, WIDTH } from './pictures.ts'

/** How long the servers run before their faults, with them, and after them. */
const BEFORE_MS = 70_000
const FAULTS_MS = 40_000
const AFTER_MS = 60_000
/** Until rates have what they look back at. */
const WARM_S = 20

async function main(folder: string): Promise<void> {
  const scene = await Scene.start(folder)
  const browser = await chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox'] })
  try {
    await act(scene)
    const end = Math.floor(Date.now() / 1000)
    const begin = Math.ceil(scene.began) + WARM_S
    const times = Array.from({ length: end - begin + 1 }, (_, index) => begin + index)
    for (const row of rowsOf(panels())) await draw(browser, await valued(scene.prometheus, row, times))
  } finally {
    await browser.close()
    await scene.stop()
  }
}

/** What the pictures tell of. */
async function act({ load, faults }: Scene): Promise<void> {
  await load.begin()
  await sleep(BEFORE_MS)
  for (const fault of faults) await fault.begin()
  await sleep(FAULTS_MS)
  for (const fault of faults) await fault.end()
  await sleep(AFTER_MS)
  await load.end()
}

interface Row {
  readonly title: string
  readonly panels: Panel[]
}

/** Panels below the titles that stand above them. */
function rowsOf(all: readonly Panel[]): Row[] {
  const rows: Row[] = []
  for (const panel of all) {
    if (panel.type === 'row') rows.push({ title: panel.title, panels: [] })
    else rows.at(-1)!.panels.push(panel)
  }
  return rows
}

async function valued(prometheus: Prometheus, { title, panels }: Row, times: number[]): Promise<DrawnRow> {
  const drawn: DrawnPanel[] = []
  for (const panel of panels) {
    const series: DrawnSeries[] = []
    for (const target of panel.targets ?? []) series.push(...(await seriesOf(prometheus, target, times)))
    if (series.length === 0) throw new Error(`The panel ${panel.title} must have data`)
    drawn.push({ panel, series })
  }
  return { title, times, panels: drawn }
}

async function seriesOf(prometheus: Prometheus, target: Target, times: number[]): Promise<DrawnSeries[]> {
  const found = await prometheus.range(target.expr, times[0]!, times.at(-1)!)
  return found.map(({ metric, values }) => {
    const labels = new Map(Object.entries(metric))
    const known = new Map(values.map(([time, value]) => [time, Number(value)]))
    return {
      label: target.legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => labels.get(name) ?? ''),
      values: times.map((time) => finite(known.get(time))),
    }
  })
}

function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null
}

async function draw(browser: Browser, row: DrawnRow): Promise<void> {
  const script = await bundled('page.ts')
  const style = await bundled('page.css')
  for (const theme of THEMES) {
    const page = await browser.newPage({ colorScheme: theme, viewport: { width: WIDTH, height: 600 } })
    await page.setContent('<!doctype html><html lang="en"><body></body></html>')
    await page.addStyleTag({ content: style })
    await page.addScriptTag({ content: script })
    await page.evaluate(`panels.drawRow(${JSON.stringify(row)})`)
    // uPlot draws at the end of the turn.
    await page.evaluate(
      'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
    )
    await takePicture(page, `panels-${row.title.split(/\W/)[0]!.toLowerCase()}`, theme, true)
    await page.close()
  }
}

async function bundled(file: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'panel-page', file)],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'panels',
    target: 'es2022',
  })
  return outputFiles[0]!.text
}

const folder = await mkdtemp(join(tmpdir(), 'torchserve-ts-panels-'))
try {
  await main(folder)
} finally {
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
}
