import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import { expectAccessible, openPage, picture } from '../support/browser.ts'
import { startServer, type Server } from '../support/server.ts'
import { packEcho } from '../support/signed-archives.ts'
import { tempDir } from '../support/temp.ts'

const LARGE_BYTES = 8 * 1024 ** 2

let archive: string
let page: Page
let faults: string[]

beforeAll(async () => {
  archive = await packEcho(tempDir(), 'sent')
})

afterEach(async () => {
  await page.close()
  expect(faults).toEqual([])
})

async function open(on: Server): Promise<void> {
  ;({ page, faults } = await openPage(`http://127.0.0.1:${on.ports.management}/console#models`))
}

async function start(): Promise<{ server: Server; store: string }> {
  const store = join(tempDir(), 'store')
  mkdirSync(store)
  const server = await startServer({ modelStore: store, config: { enable_archive_upload: true } })
  await open(server)
  return { server, store }
}

const LARGE = { name: 'large.mar', mimeType: 'application/zip', buffer: Buffer.alloc(LARGE_BYTES) }

/** An upload of LARGE takes eight seconds. */
async function slowDown(): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  const slow = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: LARGE_BYTES / 8 }
  await session.send('Network.emulateNetworkConditions', slow)
}

const bar = () => page.getByRole('progressbar', { name: 'Upload of large.mar' })

/** Bytes that the bar of the upload shows. */
function sent(): Promise<number> {
  return bar().evaluate((element) => (element as { value?: number }).value ?? 0)
}

test('an archive is chosen, uploaded, and registered by the form, which has its name', async () => {
  const { server, store } = await start()
  await page.getByLabel('choose it, or drop it here').setInputFiles(archive)
  await page.getByRole('status').getByText('sent.mar is in the model store.').waitFor()
  expect(readFileSync(join(store, 'sent.mar')).equals(readFileSync(archive))).toBe(true)
  expect(await page.getByLabel('Archive in the model store, or URL').inputValue()).toBe('sent.mar')
  await page.getByRole('button', { name: 'Register', exact: true }).click()
  await page.getByRole('form', { name: 'Scale sent 1.0' }).waitFor()
  await server.ready('sent')
  await page.getByLabel('choose it, or drop it here').setInputFiles(archive)
  await page.getByRole('alert').getByText('an upload replaces nothing').waitFor()
  await expectAccessible(page)
  await picture(page, 'uploaded')
})

test('an upload shows its bytes, and leaves nothing when it is stopped', async () => {
  const { server, store } = await start()
  await slowDown()
  await page.getByLabel('choose it, or drop it here').setInputFiles(LARGE)
  await bar().waitFor()
  const first = await server.until(sent, (bytes) => bytes > 0 && bytes < LARGE_BYTES)
  await server.until(sent, (bytes) => bytes > first)
  await expectAccessible(page)
  await picture(page, 'upload')
  await page.getByRole('button', { name: 'Stop the upload' }).click()
  await page.getByRole('alert').getByText('Upload large.mar: stopped').waitFor()
  await server.until(
    async () => readdirSync(store).length,
    (count) => count === 0,
  )
})

test('an upload goes on while another view is shown, and comes back with its progress and its end', async () => {
  const { server, store } = await start()
  await slowDown()
  await page.getByLabel('choose it, or drop it here').setInputFiles(LARGE)
  const first = await server.until(sent, (bytes) => bytes > 0)
  await page.getByRole('link', { name: 'Log' }).click()
  await page.getByLabel('Log lines').waitFor()
  await page.getByRole('link', { name: 'Models' }).click()
  const later = await server.until(sent, (bytes) => bytes > first)
  expect(later).toBeLessThan(LARGE_BYTES)
  await page.getByText(/^large\.mar: .* of 8 MB$/).waitFor()
  await picture(page, 'upload-again')
  expect(await page.getByLabel('choose it, or drop it here').isDisabled()).toBe(true)
  await page.getByRole('link', { name: 'Log' }).click()
  await server.until(
    async () => readdirSync(store),
    (names) => names.includes('large.mar'),
  )
  await page.getByRole('link', { name: 'Models' }).click()
  await page.getByRole('status').getByText('large.mar is in the model store.').waitFor()
  expect(await page.getByLabel('Archive in the model store, or URL').inputValue()).toBe('large.mar')
})

test('an archive may be dropped on the page', async () => {
  const { store } = await start()
  await page.getByText('choose it, or drop it here').waitFor()
  const transfer = await page.evaluateHandle(`(() => {
    const transfer = new DataTransfer()
    transfer.items.add(new File(['bytes'], 'dropped.mar'))
    return transfer
  })()`)
  const place = page.getByRole('region', { name: 'Upload an archive' })
  await page.getByRole('status').getByText('live').waitFor()
  await place.dispatchEvent('drop', { dataTransfer: transfer })
  await page.getByRole('status').getByText('dropped.mar is in the model store.').waitFor()
  expect(readFileSync(join(store, 'dropped.mar'), 'utf8')).toBe('bytes')
})

test('where uploads are off, the page says how to switch them on', async () => {
  await open(await startServer({}))
  await page.getByText('enable_archive_upload=true').waitFor()
  expect(await page.locator('input[type=file]').count()).toBe(0)
})
