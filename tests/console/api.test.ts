import { afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import type { OpenApi, Operation } from '../../common/openapi.ts'
import { expectAccessible, openPage, picture } from '../support/browser.ts'
import { freePorts } from '../support/ports.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { overview, Watched } from './watched.ts'

/** The view of the server's API description. */

const EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
let server: Server
let page: Page
let faults: string[]

beforeAll(async () => {
  server = await startServer({})
})

afterEach(async () => {
  await page.close()
  expect(faults).toEqual([])
})

async function open(url: string, dark = false): Promise<void> {
  ;({ page, faults } = await openPage(`${url}#api`, dark))
  await page.getByRole('heading', { name: 'API', exact: true }).waitFor()
}

const consoleOf = ({ ports }: Server): string => `http://127.0.0.1:${ports.management}/console`

/** `GET /ping` for each operation of a port's own description. */
async function describedBy(port: number): Promise<string[]> {
  const { body } = await rawRequest(port, '/', { method: 'OPTIONS' })
  const { paths } = JSON.parse(body) as OpenApi
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  )
}

const SHOWN = `[...document.querySelectorAll('.operation summary')].map(
  (line) => [...line.querySelectorAll('code')].map((code) => code.textContent).join(' '))`

/** As `describedBy`, of what the page shows. */
async function shown(): Promise<string[]> {
  await page.locator('.operation').first().waitFor()
  return page.evaluate<string[]>(SHOWN)
}

function operation(method: string, path: string) {
  const summary = page
    .locator('summary', { hasText: method })
    .filter({ has: page.getByText(path, { exact: true }) })
  return { summary, whole: page.locator('details', { has: summary }) }
}

test('each operation of inference and management is shown once, in its group', async () => {
  await open(consoleOf(server))
  const described = [
    ...(await describedBy(server.ports.inference)),
    ...(await describedBy(server.ports.management)),
  ]
  const found = await shown()
  expect(found.toSorted()).toEqual([...new Set(described)].toSorted())
  await page.getByRole('status').getByText(`${found.length} of ${found.length} operations`).waitFor()
  expect(await page.getByRole('heading', { level: 2 }).allTextContents()).toEqual([
    'Inference',
    'Management',
    'OpenAI',
    'Server',
  ])
  const groupOf = (path: string) =>
    page
      .getByText(path, { exact: true })
      .first()
      .locator('xpath=ancestor::section')
      .getAttribute('aria-label')
  expect(await groupOf('/predictions/{model_name}')).toBe('Inference')
  expect(await groupOf('/models')).toBe('Management')
  expect(await groupOf('/v1/chat/completions')).toBe('OpenAI')
  expect(await groupOf('/metrics')).toBe('Server')
})

test('one port for both APIs shows the same operations', async () => {
  await open(consoleOf(server))
  const separate = await shown()
  await page.close()
  const [port] = await freePorts(1)
  const address = `http://127.0.0.1:${port!}`
  const shared = await startServer({ config: { inference_address: address, management_address: address } })
  await open(consoleOf(shared))
  expect((await shown()).toSorted()).toEqual(separate.toSorted())
})

test.each([false, true])(
  'an operation opens by keyboard: parameters, body, answers (dark: %s)',
  async (dark) => {
    await open(consoleOf(server), dark)
    const { summary, whole } = operation('POST', '/v1/completions')
    await summary.focus()
    await page.keyboard.press('Enter')
    await whole.getByRole('heading', { name: 'Body' }).waitFor()
    await whole.getByText('A string, a list of strings, or token ids.').waitFor()
    await whole.getByText('integer, optional').first().waitFor()
    await whole.getByText('text/event-stream').waitFor()
    await whole.getByText('Too many requests are waiting.').waitFor()
    const register = operation('POST', '/models')
    await register.summary.press('Enter')
    await register.whole
      .getByRole('row', { name: /^runtime query string – .*One of PYTHON, PYTHON3, LSP/ })
      .waitFor()
    await register.whole.getByRole('row', { name: /^url required query string/ }).waitFor()
    await expectAccessible(page)
    await register.whole.scrollIntoViewIfNeeded()
    await picture(page, dark ? 'api-dark' : 'api')
  },
)

test('a search keeps what says all its words, and what was opened stays open', async () => {
  await open(consoleOf(server))
  const { summary, whole } = operation('GET', '/events')
  await summary.click()
  const one = page.getByRole('status').getByText(/^1 of \d+ operations$/)
  await page.getByLabel('Search').fill('get  EVENTS')
  await one.waitFor()
  expect(await shown()).toEqual(['GET /events'])
  expect(await whole.getAttribute('open')).not.toBeNull()
  await page.getByLabel('Search').fill('initial_workers')
  await page.getByText('Registers a model.').waitFor()
  await one.waitFor()
  expect(await shown()).toEqual(['POST /models'])
  await page.getByLabel('Search').fill('no such words')
  await page
    .getByRole('status')
    .getByText(/^0 of \d+ operations$/)
    .waitFor()
  await expectAccessible(page)
})

test('HTML in a description stays text', async () => {
  const watched = await Watched.start()
  const schema = { type: EVIL, properties: Object.fromEntries([[EVIL, { type: EVIL, description: EVIL }]]) }
  const content = Object.fromEntries([[EVIL, { schema }]])
  const evil: Operation = {
    tags: [EVIL],
    description: EVIL,
    operationId: EVIL,
    parameters: [{ in: 'query', name: EVIL, description: EVIL, required: true, schema: { type: EVIL } }],
    requestBody: { description: EVIL, required: true, content },
    responses: Object.fromEntries([[EVIL, { description: EVIL, content }]]),
  }
  const paths = Object.fromEntries([[EVIL, Object.fromEntries([['get', evil]])]])
  watched.described = { openapi: '3.0.1', info: { title: EVIL, version: EVIL }, paths }
  await open(watched.url)
  await page.getByRole('status').getByText('live').waitFor()
  watched.send('overview', overview([]))
  await page.locator('summary').click()
  await page.getByRole('heading', { name: EVIL }).waitFor()
  await page.getByRole('row', { name: EVIL }).waitFor()
  expect(await page.locator('main img, #console script').count()).toBe(0)
  await watched.stop()
})
