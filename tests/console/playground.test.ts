import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import { expectAccessible, openPage, picture } from '../support/browser.ts'
import { COUNT, ECHO, ended, next, produced } from '../support/count.ts'
import { modelFolder } from '../support/model-folder.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
let server: Server
let page: Page
let faults: string[]

beforeAll(async () => {
  server = await startServer({ models: [COUNT, ECHO] })
  for (const model of ['count', 'echo']) await server.ready(model)
})

afterEach(async () => {
  await page.close()
  expect(faults).toEqual([])
})

async function open(on = server, dark = false): Promise<void> {
  ;({ page, faults } = await openPage(`http://127.0.0.1:${on.ports.management}/console#playground`, dark))
}

async function choose(model: string, api?: string): Promise<void> {
  await page.getByLabel('Model').selectOption({ label: model })
  if (api !== undefined) await page.getByLabel('API', { exact: true }).selectOption({ label: api })
}

function rows() {
  return page.getByRole('region', { name: 'Pieces' }).locator('tbody tr')
}

function row(number: number) {
  return rows().nth(number - 1)
}

async function send(body: string): Promise<void> {
  await page.getByLabel('Body').fill(body)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
}

test('a run goes on while another view is shown, which can cancel it', async () => {
  await open()
  await choose('count')
  await send(JSON.stringify({ id: 'left', n: 100, gated: true }))
  await row(1).waitFor()
  await page.getByRole('link', { name: 'Requests' }).click()
  await next(server, 'left')
  const cancel = page.getByRole('button', { name: /^Cancel / })
  await cancel.waitFor()
  await page.getByRole('link', { name: 'Playground' }).click()
  await row(2).waitFor()
  await page.getByRole('link', { name: 'Requests' }).click()
  await cancel.click()
  await page.getByRole('button', { name: 'Cancel the request' }).click()
  expect((await ended(server, 'left')).state).toBe('cancelled')
  await page.getByRole('link', { name: 'Playground' }).click()
  await page.getByRole('alert').getByText('The connection broke').waitFor()
  expect(await rows().count()).toBe(2)
})

test('a handler cannot send the request on to the management API', async () => {
  const redirecting = await startServer({ models: [modelFolder('heads', 'heads', {})] })
  await redirecting.ready('heads')
  await open(redirecting)
  const headers = { location: '/models?url=heads&model_name=forged' }
  await send(JSON.stringify({ status: 307, headers }))
  await page.getByRole('alert').getByText('a redirect, which the playground does not follow').waitFor()
  const { json } = await redirecting.manage('GET', '/models')
  expect(json.models?.map(({ modelName }) => modelName)).toEqual(['heads'])
})

test('each piece appears before the handler makes the next one, and Stop stops the handler', async () => {
  await open()
  await choose('count')
  await send(JSON.stringify({ id: 'shown', n: 100, gated: true }))
  // The first item needs no call.
  for (let item = 1; item <= 5; item += 1) {
    await row(item).waitFor()
    expect(await rows().count()).toBe(item)
    if (item < 5) await next(server, 'shown')
  }
  await page.getByRole('status').getByText('Status 200, the answer arrives').waitFor()
  expect((await produced(server, 'shown')).items).toBe(5)
  await expectAccessible(page)
  await picture(page, 'playground')
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('status').getByText('stopped').waitFor()
  expect((await ended(server, 'shown')).state).toBe('cancelled')
})

/** A run whose items arrive one by one: what one read brings is one piece. */
async function playThrough(id: string, items: number): Promise<void> {
  await send(JSON.stringify({ id, n: items, gated: true }))
  for (let item = 1; item < items; item += 1) {
    await page.getByRole('status').getByText('Status 200, the answer arrives').waitFor()
    await row(item).waitFor()
    await next(server, id)
  }
  await page.getByRole('status').getByText('Status 200, ended').waitFor()
}

test('a second run stands beside the first one', async () => {
  await open(server, true)
  await choose('count')
  await playThrough('one', 2)
  await playThrough('two', 3)
  const figures = page.getByRole('region', { name: 'Figures' })
  const titles = await figures.getByRole('columnheader').allTextContents()
  const pieces = figures.locator(`tbody tr > :nth-child(${titles.indexOf('Pieces') + 1})`)
  expect(await pieces.allTextContents()).toEqual(['3', '2'])
  await expectAccessible(page)
  await picture(page, 'playground-dark')
})

test('HTML and scripts in an answer stay text', async () => {
  await open()
  await choose('echo')
  await send(EVIL)
  await rows().getByText(EVIL).waitFor()
  expect(await page.getByLabel('Text of the answer').textContent()).toBe(EVIL)
  expect(await page.locator('main img').count()).toBe(0)
})

test('a file is sent as it is', async () => {
  await open()
  await choose('echo')
  const path = join(tempDir(), 'body.bin')
  writeFileSync(path, 'from a file')
  await page.getByLabel('Or send a file').setInputFiles(path)
  const [request] = await Promise.all([
    page.waitForRequest(/\/console\/play\/predictions\/echo/),
    page.getByRole('button', { name: 'Send', exact: true }).click(),
  ])
  await rows().getByText('from a file').waitFor()
  expect(request.headers()['content-type']).toBe('application/octet-stream')
})

test('an error is shown with its status', async () => {
  await open()
  await choose('count', 'Open Inference: infer')
  await send('{')
  await page.getByRole('status').getByText('Status 400, failed').waitFor()
  await page.getByRole('alert').getByText('JSON').waitFor()
})

test('the programs to copy ask the inference port, and run', async () => {
  await open()
  await choose('count')
  await page.getByLabel('Body').fill(JSON.stringify({ n: 2, size: 4 }))
  await page.getByText('Copy as').click()
  const program = await page.locator('.program').textContent()
  expect(program).toContain(`http://127.0.0.1:${server.ports.inference}/predictions/count`)
})
