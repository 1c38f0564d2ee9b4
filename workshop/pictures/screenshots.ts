/**
 * The first part of `npm run screenshots`: starts a server, puts it to work, and writes pictures of the
 * console into docs/pictures, light and dark. Needs Chromium.
 */
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { chromium, type Page } from 'playwright-core'
import { ARCHIVES, packTinyLlama } from '../../examples/demo/archive.ts'
import { DemoServer } from '../../examples/demo/server.ts'
import { chromiumPath } from './chromium.ts'
import { takePicture, type Theme, THEMES, WIDTH } from './pictures.ts'

const ROOT = join(import.meta.dirname, '..', '..')
/** Streams that are open at any time. A worker of `words` is left for each playground. */
const WORDS_STREAMS = 2
const WORDS_WORKERS = WORDS_STREAMS + THEMES.length
const CHAT_STREAMS = 6
/** How long the charts of the overview grow before they are taken. */
const CHARTS_MS = 40_000

const VERSE =
  'In the beginning God created the heaven and the earth. And the earth was without form, and void; ' +
  'and darkness was upon the face of the deep. And the Spirit of God moved upon the face of the waters.'

const CHAT = JSON.stringify({
  model: 'tiny-llama',
  stream: true,
  max_tokens: 200,
  messages: [{ role: 'user', content: 'Tell me of the sea' }],
})
const ENDLESS = JSON.stringify({ id: 'endless', n: 1_000_000, size: 8_192, delay: 0 })

interface Themed {
  readonly theme: Theme
  readonly page: Page
}

async function screenshots(signal: AbortSignal): Promise<void> {
  const archive = await packTinyLlama(signal)
  const models = [
    `tiny-llama=${archive}`,
    `words=${join(ROOT, 'examples', 'my-first-handler')}`,
    `count=${join(ROOT, 'model-store', 'count')}`,
  ]
  const config = { default_workers_per_model: WORDS_WORKERS }
  const server = await DemoServer.start({ modelStore: ARCHIVES, models, config, signal })
  const browser = await chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox'] })
  const ended = new AbortController()
  try {
    for (const model of ['tiny-llama', 'words', 'count']) await server.modelReady(model, signal)
    const load = keepBusy(server, AbortSignal.any([ended.signal, signal]))
    const open = async (theme: Theme): Promise<Themed> => {
      const page = await browser.newPage({ colorScheme: theme, viewport: { width: WIDTH, height: 770 } })
      await page.goto(`http://127.0.0.1:${server.managementPort}/console`)
      return { theme, page }
    }
    await Promise.race([load, Promise.all(THEMES.map(open)).then(take)])
    ended.abort()
    await load
  } finally {
    ended.abort()
    await browser.close()
    await server.stop()
  }
}

/** Each view, when it shows what it is for. */
async function take(pages: Themed[]): Promise<void> {
  await sleep(CHARTS_MS)
  await pictures(pages, 'overview', 770, (page) => page.getByRole('button', { name: 'words 1.0' }).waitFor())
  await pictures(pages, 'requests', 620, async (page) => {
    await page.getByRole('link', { name: 'Requests' }).click()
    await page
      .getByRole('button', { name: /^Cancel/ })
      .nth(CHAT_STREAMS)
      .waitFor()
    await page.getByRole('cell', { name: 'its client' }).waitFor()
  })
  await pictures(pages, 'playground', 800, async (page) => {
    await page.getByRole('link', { name: 'Playground' }).click()
    await page.getByLabel('Model', { exact: true }).selectOption({ label: 'words' })
    await page.getByLabel('Body').fill(VERSE)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByRole('region', { name: 'Pieces' }).locator('tbody tr').nth(19).waitFor()
  })
}

/** @param height of the picture, in pixels */
async function pictures(
  pages: Themed[],
  view: string,
  height: number,
  show: (page: Page) => Promise<void>,
): Promise<void> {
  await Promise.all(
    pages.map(async ({ theme, page }) => {
      await page.setViewportSize({ width: WIDTH, height })
      await show(page)
      await takePicture(page, view, theme)
    }),
  )
}

/** Keeps streams of all models open, over several APIs, until the signal. */
async function keepBusy({ inferencePort }: DemoServer, signal: AbortSignal): Promise<void> {
  const open = async (path: string, type: string, body: string): Promise<Response> => {
    const headers = { 'content-type': type }
    const url = `http://127.0.0.1:${inferencePort}${path}`
    const answer = await fetch(url, { method: 'POST', headers, body, signal })
    if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${await answer.text()}`)
    return answer
  }
  const words = async (index: number): Promise<void> => {
    await (await open('/predictions/words', 'text/plain', VERSE.slice(0, 100 + 60 * index))).arrayBuffer()
  }
  const chat = async (index: number): Promise<void> => {
    await (await open('/v1/chat/completions', 'application/json', CHAT)).arrayBuffer()
    await sleep(300 * index, undefined, { signal })
  }
  const unread = async (): Promise<void> => {
    // Its client does not read, so its handler is held back.
    const answer = await open('/predictions/count', 'application/json', ENDLESS)
    await once(signal, 'abort')
    await answer.body?.cancel()
  }
  const again = async (each: () => Promise<void>): Promise<void> => {
    try {
      while (!signal.aborted) await each()
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }
  await Promise.all([
    again(unread),
    ...indices(WORDS_STREAMS).map((index) => again(() => words(index))),
    ...indices(CHAT_STREAMS).map((index) => again(() => chat(index))),
  ])
}

function indices(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

const stopped = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.on(name, () => stopped.abort(new Error(`Stopped by ${name}`)))
await screenshots(stopped.signal)
