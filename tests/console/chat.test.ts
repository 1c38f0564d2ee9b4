import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Locator, Page } from 'playwright-core'
import { expectAccessible, openPage, picture } from '../support/browser.ts'
import { modelFolder } from '../support/model-folder.ts'
import { said } from '../support/paced.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** The chat of the playground. */

const EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script>'

let server: Server
let page: Page
let faults: string[]

beforeAll(async () => {
  server = await startServer({ models: [modelFolder('paced', 'paced-chat', {})] })
  await server.ready('paced')
})

afterEach(async () => {
  await page.close()
  expect(faults).toEqual([])
})

async function open(dark = false): Promise<void> {
  ;({ page, faults } = await openPage(`http://127.0.0.1:${server.ports.management}/console#playground`, dark))
  // A chat model is asked for a chat from the start.
  await page.getByLabel('Body').waitFor()
  expect(await page.getByLabel('API', { exact: true }).inputValue()).toBe('chat/completions')
}

/** The body of a chat whose last message is the plan of a run. */
function chatOf(plan: object): string {
  return JSON.stringify({
    model: 'paced',
    stream: true,
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'Count' }] },
      { role: 'user', content: JSON.stringify(plan) },
    ],
  })
}

async function send(body: string): Promise<void> {
  await page.getByLabel('Body').fill(body)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
}

function messages(): Locator {
  return page.getByRole('region', { name: 'Chat' }).getByRole('listitem')
}

test.each([false, true])('the answer grows piece by piece below the messages (dark: %s)', async (dark) => {
  await open(dark)
  const gates = join(tempDir(), 'gate')
  await send(chatOf({ id: `grows-${dark}`, n: 3, gates }))
  const answer = messages().nth(2)
  await expectText(answer, 'assistant1\n …')
  expect(await messages().nth(0).textContent()).toBe('systemCount')
  expect(await messages().nth(1).textContent()).toContain('grows')
  expect(await page.getByRole('button', { name: 'Send the next message' }).isDisabled()).toBe(true)
  writeFileSync(`${gates}.1`, '')
  await expectText(answer, 'assistant1\n2\n …')
  await expectAccessible(page)
  writeFileSync(`${gates}.2`, '')
  await expectText(answer, 'assistant1\n2\n3\n')
  await picture(page, dark ? 'chat-dark' : 'chat')
})

test('the next message is sent with the turns before it, by keyboard', async () => {
  await open()
  await send(chatOf({ id: 'first', n: 1 }))
  await expectText(messages().nth(2), 'assistant1\n')
  const plan = JSON.stringify({ id: 'second', n: 2 })
  await page.getByLabel('Next message').focus()
  await page.keyboard.type(plan)
  const [request] = await Promise.all([
    page.waitForRequest(/\/console\/play\/v1\/chat\/completions/),
    page.keyboard.press('Enter'),
  ])
  await expectText(messages().nth(4), 'assistant1\n2\n')
  const sent = JSON.parse(request.postData()!) as { messages: object[]; stream: boolean }
  expect(sent.stream).toBe(true)
  expect(sent.messages.slice(2)).toEqual([
    { role: 'assistant', content: '1\n' },
    { role: 'user', content: plan },
  ])
  expect(JSON.parse(await page.getByLabel('Body').inputValue())).toEqual(sent)
  expect(await page.getByLabel('Next message').inputValue()).toBe('')
})

test('Stop ends an answer that grows, and its handler', async () => {
  await open()
  await send(chatOf({ id: 'stopped', n: 2, gates: join(tempDir(), 'never') }))
  await expectText(messages().nth(2), 'assistant1\n …')
  await page.getByRole('button', { name: 'Stop' }).press('Enter')
  await expectText(messages().nth(2), 'assistant1\n')
  await said(server, 'aborted', 'stopped')
})

test('HTML and scripts in messages and answers stay text, also on a narrow page', async () => {
  await open()
  await page.setViewportSize({ width: 360, height: 800 })
  await send(chatOf({ id: EVIL, n: 2, stamped: true }))
  await expectText(messages().nth(2), `assistant<${EVIL}#1>\n<${EVIL}#2>\n`)
  expect(await page.locator('main img, main script').count()).toBe(0)
  await expectAccessible(page)
  const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
  expect(overflow).toBeLessThanOrEqual(0)
  await messages().nth(2).scrollIntoViewIfNeeded()
  await picture(page, 'chat-narrow')
})

/** Waits until an element has a text, exactly. */
async function expectText(element: Locator, text: string): Promise<void> {
  await server.until(
    async () => ((await element.count()) === 0 ? '' : await element.textContent()),
    (found) => found === text,
  )
}
