import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import { expectAccessible, openPage, picture } from '../support/browser.ts'
import { writeApiKeys } from '../support/api-keys.ts'
import { COUNT, countBody, ended } from '../support/count.ts'
import { modelFolder } from '../support/model-folder.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'

/** Too long to end by itself before a test is over. */
const STREAM = { n: 100_000, delay: 10 }

let server: Server
let page: Page
let faults: string[]

beforeAll(async () => {
  server = await startServer({ models: [COUNT] })
  await server.ready('count')
})

afterEach(async () => {
  await page.close()
  expect(faults).toEqual([])
})

async function open(on: Server, hash = ''): Promise<void> {
  ;({ page, faults } = await openPage(`http://127.0.0.1:${on.ports.management}/console${hash}`))
}

test('without a token the server is not shown, with a wrong one neither, and with the management key it is', async () => {
  const guarded = await startServer({ flags: ['--enable-model-api'] })
  const keys = JSON.parse(readFileSync(join(guarded.folder, 'key_file.json'), 'utf8')) as {
    management: { key: string }
    inference: { key: string }
  }
  await open(guarded)
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(await page.getByRole('alert').count()).toBe(0)
  await page.getByLabel('Key', { exact: true }).fill(keys.inference.key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').getByText('The server refused this key').waitFor()
  await picture(page, 'sign-in')
  await page.getByLabel('Key', { exact: true }).fill(keys.management.key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('No model is registered.').waitFor()
  expect(await page.evaluate('[localStorage.length, sessionStorage.length, document.cookie]')).toEqual([
    0,
    0,
    '',
  ])
})

test('a key that ends while the page is open asks for another, and keeps what was typed', async () => {
  const [first, second] = ['first', 'second'].map((name) => ({ name, scopes: ['management'] }))
  const path = writeApiKeys([first!, second!])
  const guarded = await startServer({ flags: ['--enable-model-api'], config: { api_keys_file: path } })
  await open(guarded)
  const signIn = async (key: string): Promise<void> => {
    await page.getByLabel('Key', { exact: true }).fill(key)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('No model is registered.').waitFor()
  }
  await signIn('tsk_first')
  await page.getByLabel('Archive in the model store, or URL').fill('typed.mar')
  writeApiKeys([second!], path)
  await page.getByRole('dialog').getByText('Your key has ended').waitFor()
  await page.getByRole('alert').getByText('The server refused this key').waitFor()
  await expectAccessible(page)
  await picture(page, 'key-ended')
  await signIn('tsk_second')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(await page.getByLabel('Archive in the model store, or URL').inputValue()).toBe('typed.mar')
})

test('the playground says that the management key is not for inference', async () => {
  const guarded = await startServer({ models: [COUNT], flags: ['--enable-model-api'] })
  const keys = JSON.parse(readFileSync(join(guarded.folder, 'key_file.json'), 'utf8')) as {
    management: { key: string }
    inference: { key: string }
  }
  await open(guarded, '#playground')
  await page.getByLabel('Key', { exact: true }).fill(keys.management.key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  // Asked for before anything is sent.
  await page.getByText('The key that you signed in with is not valid for inference').waitFor()
  await page.getByLabel('Body').fill('{"n": 2}')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByRole('status').getByText('Status 400, failed').waitFor()
  await page.getByRole('alert').getByText('InvalidKeyException').waitFor()
  await expectAccessible(page)
  await picture(page, 'second-key')
  await page.getByLabel('Inference key').fill(keys.inference.key)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByRole('status').getByText('Status 200, ended').waitFor()
})

const VIEWS = ['', 'requests', 'playground', 'log', 'configuration']

test.each(VIEWS)(
  'the Tab key reaches everything that can be used, and shows where it is: #%s',
  async (view) => {
    await open(server, `#${view}`)
    await page.getByRole('status').getByText('live').waitFor()
    // Pages that ask the server first have more than their search once it has answered.
    if (view === 'configuration') await page.getByText('job_queue_size').first().waitFor()
    const missing = await page.evaluate<number>(`globalThis.wanted = new Set([...document.querySelectorAll(
    'a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter((each) => !each.disabled && each.checkVisibility())); wanted.size`)
    expect(missing).toBeGreaterThan(VIEWS.length)
    for (let presses = 0; presses < missing; presses += 1) {
      await page.keyboard.press('Tab')
      expect(
        await page.evaluate(`{ const { activeElement: at } = document; wanted.delete(at);
        at.matches(':focus-visible') && getComputedStyle(at).outlineStyle }`),
      ).not.toMatch(/none|false/)
    }
    expect(await page.evaluate('[...wanted].map((each) => each.outerHTML.slice(0, 200))')).toEqual([])
  },
)

test('an open stream appears, is cancelled from the list, and its handler stops', async () => {
  await open(server, '#requests')
  const url = `http://127.0.0.1:${server.ports.inference}/predictions/count`
  const response = await fetch(url, { method: 'POST', ...countBody({ id: 'cancelled', ...STREAM }) })
  const id = response.headers.get('x-request-id')!
  await page.getByRole('button', { name: `Cancel ${id}` }).click()
  await page.getByRole('button', { name: 'Cancel the request' }).click()
  await page.getByRole('status').getByText(`Request ${id} was cancelled`).waitFor()
  await expect(response.text()).rejects.toThrow()
  expect((await ended(server, 'cancelled')).state).toBe('cancelled')
  await page.getByText('0 of 0 open requests').waitFor()
})

test('a killed worker comes back on the page, which tells how the last one ended', async () => {
  await open(server)
  const row = page.getByRole('row', { name: /count 1\.0/ })
  await row.locator('.state').getByText('ready').waitFor()
  await row.getByRole('button').click()
  const { pid } = await server.worker('count')
  const worker = page.getByRole('region', { name: 'Workers' }).locator('tbody tr')
  await worker.getByRole('cell', { name: String(pid), exact: true }).waitFor()
  process.kill(pid, 'SIGKILL')
  await worker.getByText('SIGKILL').waitFor()
  await server.ready('count')
  const { pid: next } = await server.worker('count')
  expect(next).not.toBe(pid)
  await worker.getByRole('cell', { name: String(next), exact: true }).waitFor()
  await row.locator('.state').getByText('ready').waitFor()
  await expectAccessible(page)
  await picture(page, 'real-overview')
})

test('a model is registered, scaled and unregistered from the page, and a refusal is shown', async () => {
  const empty = await startServer({ modelStore: join(REPOSITORY, 'model-store') })
  await open(empty, '#models')
  const location = page.getByLabel('Archive in the model store, or URL')
  await location.fill('no-such-model')
  await page.getByRole('button', { name: 'Register', exact: true }).click()
  await page.getByRole('alert').getByText('no-such-model').waitFor()
  await location.fill('count')
  await page.getByRole('button', { name: 'Register', exact: true }).click()
  await page.getByRole('status').getByText('Register the model:').waitFor()
  await page.getByRole('button', { name: /^count / }).click()
  const form = page.getByRole('form', { name: /^Scale count/ })
  await form.getByLabel('Workers').fill('2')
  await form.getByRole('button', { name: 'Scale', exact: true }).click()
  await server.until(
    () => empty.describe('count'),
    ([model]) => model?.workers.length === 2,
  )
  await page.getByRole('status').getByText('to 2:').waitFor()
  await page.getByRole('button', { name: 'Unregister', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Unregister count' }).click()
  await form.waitFor({ state: 'detached' })
})

test('HTML that a client sends and a handler writes to the log stays text', async () => {
  const talking = await startServer({ models: [modelFolder('says', 'says', {})] })
  await talking.ready('says')
  await open(talking, '#log')
  const text = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
  const url = `http://127.0.0.1:${talking.ports.inference}/predictions/says`
  await fetch(url, { method: 'POST', body: text, headers: { 'content-type': 'text/plain' } })
  await page.getByRole('region', { name: 'Log lines' }).getByText(text).waitFor()
  expect(await page.locator('img, #console script').count()).toBe(0)
})

test('the configuration is shown with its sources, without secrets, and can be searched', async () => {
  const evil = '<img src=x onerror="alert(1)">'
  const configured = await startServer({
    config: { job_queue_size: 7, keystore_pass: 'hunter2', allowed_urls: `https://models/${evil}` },
  })
  await open(configured, '#configuration')
  const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name} `) })
  await row('job_queue_size').getByRole('cell', { name: '7', exact: true }).waitFor()
  await row('job_queue_size').getByText('config.properties:').waitFor()
  await row('keystore_pass').getByRole('cell', { name: '***' }).waitFor()
  await row('allowed_urls').getByText(evil).waitFor()
  expect(await page.content()).not.toContain('hunter2')
  const all = await page.locator('tbody tr').count()
  await page.getByLabel('Only keys that are set').check()
  expect(await page.locator('tbody tr').count()).toBeLessThan(all / 2)
  await page.getByLabel('Filter').fill('queue_size')
  await page.getByRole('status').getByText(`1 of ${all} keys`).waitFor()
  await expectAccessible(page)
  await picture(page, 'configuration')
})
