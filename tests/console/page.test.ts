import { gzipSync } from 'node:zlib'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { Locator, Page } from 'playwright-core'
import { expectAccessible, openPage, picture } from '../support/browser.ts'
import type { OverviewEvent } from '../../common/server-events.ts'
import { REPOSITORY } from '../support/server-process.ts'
import { eventBytes, logLine, model, openRequest, overview, Watched } from './watched.ts'

const EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script>'

/** Milliseconds between two frames at most, while the table scrolls through all rows for three seconds. */
const LONGEST_FRAME = `new Promise((resolve) => {
  const table = document.querySelector('.rows')
  let longest = 0, last = performance.now(), frames = 0
  const frame = (now) => {
    longest = Math.max(longest, now - last)
    last = now
    frames += 1
    table.scrollTop = (table.scrollHeight - table.clientHeight) * frames / 180
    if (frames < 180) requestAnimationFrame(frame)
    else resolve(longest)
  }
  requestAnimationFrame(frame)
})`

/** How many requests the table shows as soon as a filter has left ten of them; frames come later. */
const FILTERED = `new Promise((resolve) => {
  const observer = new MutationObserver(() => {
    if (!document.body.textContent.includes('10 of')) return
    observer.disconnect()
    resolve(document.querySelectorAll('td[title^="id-0123"]').length)
  })
  observer.observe(document.body, { childList: true, characterData: true, subtree: true })
  const filter = document.querySelector('#filter')
  filter.value = 'id-0123'
  filter.dispatchEvent(new Event('input', { bubbles: true }))
})`

/** From now on the page cannot connect until `isDown` is false; `tries` has the times when it tried. */
const RECORD_TRIES = `(() => {
  const { fetch } = globalThis
  globalThis.isDown = true
  globalThis.fetch = (...request) => {
    tries.push(Date.now())
    return isDown ? Promise.reject(new Error('down')) : fetch(...request)
  }
})()`

let watched: Watched
let page: Page
let faults: string[]

beforeEach(async () => {
  watched = await Watched.start()
})

afterEach(async () => {
  await page.close()
  await watched.stop()
  expect(faults).toEqual([])
})

async function open(hash = '', dark = false): Promise<void> {
  ;({ page, faults } = await openPage(`${watched.url}${hash}`, dark))
}

/** Opens a view and waits until the page follows the events. */
async function follow(hash = '', dark = false): Promise<void> {
  await open(hash, dark)
  await page.getByRole('status').getByText('live').waitFor()
}

/** The row of a model in the table. */
function row(name: string): Locator {
  return page.getByRole('region', { name: 'Models' }).getByRole('row').filter({ hasText: name }).first()
}

/** Opens the row of a model. */
async function unfold(name: string): Promise<void> {
  await row(name).getByRole('button', { expanded: false }).click()
}

test('a wrong token is refused with the server’s words, and a right one shows the overview', async () => {
  watched.token = 'right'
  await open()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await expectAccessible(page)
  await page.getByLabel('Key', { exact: true }).fill('wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').getByText('Token Authentication failed.').waitFor()
  await page.getByLabel('Key', { exact: true }).fill('right')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('status').getByText('live').waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
})

test('a token that was refused can be tried again', async () => {
  watched.token = 'right'
  await open()
  await page.getByLabel('Key', { exact: true }).fill('right')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('status').getByText('live').waitFor()
  watched.token = 'another'
  watched.lose()
  await page.getByRole('alert').getByText('Token Authentication failed.').waitFor()
  watched.token = 'right'
  await page.getByLabel('Key', { exact: true }).fill('right')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('status').getByText('live').waitFor()
})

test('a view is as it was left when it is shown again, until the user signs out', async () => {
  watched.token = 'right'
  await open('#log')
  await page.getByLabel('Key', { exact: true }).fill('right')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('status').getByText('live').waitFor()
  watched.send('overview', overview([model()]))
  await page.getByText('No log lines yet').waitFor()
  watched.send('log', { lines: [logLine('loaded'), logLine('Traceback', 'error')], dropped: 0 })
  await page.getByLabel('Search').fill('trace')
  await page.getByText('1 line').waitFor()
  expect(await page.getByText('No log lines yet').count()).toBe(0)
  await page.getByRole('link', { name: 'Playground' }).click()
  await page.getByLabel('Body').fill('written')
  await page.getByRole('link', { name: 'Log', exact: true }).click()
  watched.send('log', { lines: [logLine('another trace')], dropped: 0 })
  await page.getByText('2 lines').waitFor()
  expect(await page.getByLabel('Search').inputValue()).toBe('trace')
  await expectAccessible(page)
  await page.getByRole('link', { name: 'Playground' }).click()
  expect(await page.getByLabel('Body').inputValue()).toBe('written')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('Key', { exact: true }).fill('right')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('status').getByText('live').waitFor()
  watched.send('overview', overview([model()]))
  await page.getByLabel('Body').waitFor()
  expect(await page.getByLabel('Body').inputValue()).not.toBe('written')
})

test('a question goes with its view, and leaves the page to the user', async () => {
  await follow()
  watched.send('overview', overview([model()]))
  await page.getByRole('link', { name: 'Log', exact: true }).click()
  await page.getByRole('link', { name: 'Models' }).click()
  await unfold('words')
  await page.getByRole('button', { name: 'Unregister', exact: true }).click()
  await page.getByRole('dialog').waitFor()
  await page.goBack()
  await page.getByRole('heading', { name: 'Log', exact: true }).waitFor()
  await page.getByRole('link', { name: 'Models' }).click()
  await page.getByRole('button', { name: 'Scale', exact: true }).waitFor()
  expect(await page.getByRole('dialog').count()).toBe(0)
  expect(watched.calls).toEqual([])
})

test('after a new start the server is asked for its configuration again', async () => {
  await follow('#configuration')
  const started = (minute: number): OverviewEvent => {
    const event = overview([model()])
    return { ...event, server: { ...event.server, startedAt: `2026-01-02T03:0${minute}:05.000Z` } }
  }
  const asked = () => watched.calls.filter((call) => call === 'GET /configuration').length
  watched.send('overview', started(1))
  await page.waitForResponse('**/configuration')
  watched.send('overview', started(1))
  await page.getByRole('link', { name: 'Models' }).click()
  await row('words').waitFor()
  await page.getByRole('link', { name: 'Configuration' }).click()
  expect(asked()).toBe(1)
  const again = page.waitForResponse('**/configuration')
  watched.send('overview', started(2))
  await again
  expect(asked()).toBe(2)
})

test('the overview says whether the server runs or stops, and since when it is up', async () => {
  await follow()
  const state = (draining: boolean): OverviewEvent => {
    const event = overview([model({ state: draining ? 'stopped' : 'ready' })], {
      at: '2026-01-02T04:06:08.000Z',
    })
    return { ...event, server: { ...event.server, startedAt: '2026-01-02T03:04:05.000Z', draining } }
  }
  const facts = page.getByRole('region', { name: 'Server' }).locator('.facts div')
  watched.send('overview', state(false))
  await row('words').getByText('ready').waitFor()
  expect((await facts.allTextContents()).slice(0, 2)).toEqual(['Staterunning', 'Up for1 h 2 min'])
  watched.send('overview', state(true))
  await row('words').getByText('stopped').waitFor()
  expect((await facts.allTextContents()).slice(0, 2)).toEqual(['Statestopping', 'Up for1 h 2 min'])
})

test('a model tells how many requests wait, how many more may, and how others ended', async () => {
  await follow()
  const stream = { finished: 1, failed: 2, cancelled: 3, timed_out: 4, client_stalled: 0 }
  const unary = { finished: 5, failed: 0, cancelled: 0, timed_out: 0, client_stalled: 0 }
  const counts = { unary, stream, items: 6, bytes: 7 }
  watched.send('overview', overview([model({ queue: { waiting: 8, room: 92 }, counts })]))
  await unfold('words')
  const facts = await page.locator('.opened .facts div').allTextContents()
  expect(facts).toEqual(
    expect.arrayContaining([
      'Queue8 waiting, room for 92 more',
      'Streams1 finished, 2 failed, 3 cancelled, 4 timed out',
      'Unary requests5 finished',
    ]),
  )
})

test.each([false, true])('models, workers and charts are shown (dark: %s)', async (dark) => {
  await follow('', dark)
  const exit = { at: '2026-01-02T03:04:05.000Z', cause: 'killed by SIGKILL', lines: ['the last line'] }
  const failure = { id: 'f-1', at: exit.at, reason: 'Cannot find module weights' }
  const workers = [{ id: '9000', state: 'failed', inFlight: 0, restarts: 3, lastExit: exit }]
  const models = [model(), model({ modelName: 'broken', state: 'failed', failure, workers })]
  const loading = [
    {
      url: 'https://models/x.mar',
      phase: 'downloading' as const,
      receivedBytes: 5e6,
      totalBytes: 1e7,
      ageMs: 900,
    },
  ]
  for (let second = 0; second < 5; second += 1) {
    const counts = { ...models[0]!.counts, items: second * 100 }
    const gaps = { bounds: [0.001, 0.01, 0.1], counts: [0, second * 50, second * 50, 0], sum: second }
    const times = { ...models[0]!.times, gaps }
    const at = new Date(Date.UTC(2026, 0, 2, 3, 4, 5 + second)).toISOString()
    watched.send('overview', overview([{ ...models[0]!, counts, times }, models[1]!], { at, loading }))
  }
  await page.getByText('sent 100', { exact: true }).waitFor()
  await page.getByText('p50 10 ms', { exact: true }).waitFor()
  await page.getByText('p99 98 ms', { exact: true }).waitFor()
  await unfold('broken')
  await page.getByRole('alert').getByText('Cannot find module weights').waitFor()
  await page.getByText('killed by SIGKILL').click()
  await page.getByText('the last line').waitFor()
  await page.getByRole('progressbar').waitFor()
  await expectAccessible(page)
  await picture(page, dark ? 'overview-dark' : 'overview')
})

test('a value of one second between seconds without any is a point of the chart', async () => {
  await follow()
  const second = async (at: number, first: number): Promise<void> => {
    const firstResponse = { bounds: [0.001, 0.01, 0.1], counts: [0, first, 0, 0], sum: first }
    const times = { ...model().times, firstResponse }
    const time = new Date(Date.UTC(2026, 0, 2, 3, 4, at)).toISOString()
    watched.send('overview', overview([model({ times, queue: { waiting: at, room: 9 } })], { at: time }))
    await row('words')
      .getByRole('cell', { name: String(at), exact: true })
      .waitFor()
  }
  const inked = (): Promise<number> =>
    page.evaluate<number>(`(() => {
      const figure = [...document.querySelectorAll('figure')].find((each) => /first item/.test(each.textContent))
      if (figure.querySelector('canvas') === null) return 0
      const { width, height } = figure.querySelector('canvas')
      const { data } = figure.querySelector('canvas').getContext('2d').getImageData(0, 0, width, height)
      return Array.from({ length: data.length / 4 }, (_, index) => data.subarray(index * 4, index * 4 + 4))
        .filter(([red, green, blue, alpha]) => alpha === 255 && red > blue + 80).length
    })()`)
  for (const at of [1, 2, 3]) await second(at, 0)
  expect(await inked()).toBe(0)
  await second(4, 5)
  for (const at of [5, 6]) await second(at, 5)
  expect(await inked()).toBeGreaterThan(0)
})

test('2,000 open requests: few are in the document, and they can be sorted, searched and scrolled', async () => {
  await follow('#requests')
  const requests = Array.from({ length: 2_000 }, (_, index) => openRequest(index))
  watched.send('requests', { at: '', total: 2_000, requests })
  await page.getByText('2,000 of 2,000 open requests').waitFor()
  expect(await page.locator('tbody tr').count()).toBeLessThan(40)
  await page.getByTitle('id-01999').waitFor()
  await page.getByRole('button', { name: 'Age' }).click()
  await page.getByTitle('id-00000').waitFor()
  await page.evaluate("document.querySelector('.rows').scrollTop = 34 * 1000")
  await page.getByTitle('id-01005').waitFor()
  await expectAccessible(page)
  await picture(page, 'requests')
  expect(await page.evaluate(FILTERED)).toBe(10)
  await page.getByText('10 of 2,000 open requests').waitFor()
})

test('a request is found by its model, API, client, key or id, whatever the case', async () => {
  await follow('#requests')
  const requests = [
    openRequest(1, { modelName: 'Nouns' }),
    openRequest(2, { api: 'torchserve-grpc' }),
    openRequest(3, { client: '10.0.0.3' }),
    openRequest(4, { key: 'Alice' }),
    openRequest(5),
  ]
  watched.send('requests', { at: '', total: 5, requests })
  await page.getByText('5 of 5 open requests').waitFor()
  const wanted = ['nOUNS', ' GRPC', '10.0.0.3 ', ' ALICE ', 'ID-00005']
  for (const [index, text] of wanted.entries()) {
    await page.getByLabel('Filter').fill(text)
    await page.getByTitle(requests[index]!.id).waitFor()
    await page.getByText('1 of 5 open requests').waitFor()
  }
})

test('a request says what it waits for, and a dash for what has not come', async () => {
  await follow('#requests')
  const requests = [
    openRequest(1, { waitsFor: 'client', firstResponseMs: 0, lastGapMs: 0 }),
    openRequest(2, { waitsFor: 'handler', lastGapMs: undefined }),
    openRequest(3, { waitsFor: 'worker', firstResponseMs: undefined, lastGapMs: undefined }),
  ]
  watched.send('requests', { at: '', total: 3, requests })
  await page.getByText('3 of 3 open requests').waitFor()
  const columns = await page.locator('thead th').allTextContents()
  const cells = (column: string): Promise<string[]> =>
    page.locator(`tbody td:nth-child(${columns.indexOf(column) + 1})`).allTextContents()
  expect(await cells('Waits for')).toEqual(['a worker', 'the handler', 'its client'])
  expect(await cells('First item')).toEqual(['–', '3.2 ms', '0 ms'])
  expect(await cells('Last gap')).toEqual(['–', '–', '0 ms'])
})

test('the page draws while 2,000 requests scroll by and change four times a second', async () => {
  await follow('#requests')
  const tell = (round: number): void => {
    const requests = Array.from({ length: 2_000 }, (_, index) => openRequest(index, { items: index + round }))
    watched.send('requests', { at: '', total: 2_000, requests })
  }
  tell(0)
  await page.getByText('2,000 of 2,000 open requests').waitFor()
  let rounds = 0
  const timer = setInterval(() => tell((rounds += 1)), 250)
  const longest = await page.evaluate<number>(LONGEST_FRAME)
  clearInterval(timer)
  expect(rounds).toBeGreaterThan(4)
  // Milliseconds; a pause that people notice, with room for a busy machine.
  expect(longest).toBeLessThan(500)
  await page.getByTitle('id-00000').waitFor()
})

test('a column sorts both ways by keyboard, and says which', async () => {
  await follow('#requests')
  watched.send('requests', { at: '', total: 3, requests: [2, 3, 1].map((index) => openRequest(index)) })
  const header = page.getByRole('columnheader', { name: 'Items' })
  await header.getByRole('button').press('Enter')
  const ids = (): Promise<string[]> => page.locator('tbody td:nth-child(11)').allTextContents()
  expect([await header.getAttribute('aria-sort'), await ids()]).toEqual([
    'descending',
    ['id-00003', 'id-00002', 'id-00001'],
  ])
  await header.getByRole('button').press('Enter')
  expect([await header.getAttribute('aria-sort'), await ids()]).toEqual([
    'ascending',
    ['id-00001', 'id-00002', 'id-00003'],
  ])
})

test('a request is cancelled after a question, and not without it', async () => {
  await follow('#requests')
  watched.send('requests', { at: '', total: 1, requests: [openRequest(7)] })
  const cancel = page.getByRole('button', { name: 'Cancel id-00007' })
  await cancel.press('Enter')
  await page.getByRole('dialog').press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Cancel id-00007')
  await cancel.click()
  await page.getByRole('button', { name: 'Go back' }).click()
  await cancel.click()
  expect(watched.calls).toEqual([])
  await expectAccessible(page)
  await page.getByRole('button', { name: 'Cancel the request' }).click()
  await page.getByText('Done: DELETE').waitFor()
  expect(watched.calls).toEqual(['DELETE /requests/id-00007'])
})

test('a node of a workflow has no cancel of its own: its workflow is cancelled', async () => {
  await follow('#requests')
  const requests = [openRequest(1), openRequest(2, { api: 'workflow', id: 'id-00001/node' })]
  watched.send('requests', { at: '', total: 2, requests })
  await page.getByTitle('id-00001/node').waitFor()
  expect(await page.getByRole('button', { name: /^Cancel id/ }).count()).toBe(1)
})

test('a model is registered, scaled up at once, and scaled down or unregistered only after a question', async () => {
  await follow('#models')
  watched.send('overview', overview([model()]))
  await page.getByText('Register a model').click()
  await page.getByLabel('Archive in the model store, or URL').fill('a b.mar')
  await page.getByRole('button', { name: 'Register', exact: true }).click()
  await page.getByText('Done: POST').waitFor()
  await unfold('words')
  const workers = page.getByRole('form', { name: 'Scale words 1.0' }).getByLabel('Workers')
  await workers.fill('3')
  await page.getByRole('button', { name: 'Scale', exact: true }).click()
  await page.getByText('Done: PUT').waitFor()
  await workers.fill('0')
  await page.getByRole('button', { name: 'Scale', exact: true }).click()
  await page.getByText('Scale words 1.0 from 1 down to 0 workers?').waitFor()
  await page.getByRole('button', { name: 'Go back' }).click()
  await page.getByRole('button', { name: 'Unregister', exact: true }).click()
  await page.getByRole('button', { name: 'Unregister words 1.0' }).click()
  await page.getByText('Done: DELETE').waitFor()
  await expectAccessible(page)
  await picture(page, 'models')
  expect(watched.calls).toEqual([
    'POST /models?url=a+b.mar&synchronous=true&initial_workers=1',
    'PUT /models/words/1.0?min_worker=3&synchronous=true',
    'DELETE /models/words/1.0',
  ])
})

test('what is written in a form stays while events arrive', async () => {
  await follow('#models')
  watched.send('overview', overview([model()]))
  await page.getByText('Register a model').click()
  await page.getByRole('form', { name: 'Register a model' }).getByLabel('Workers').fill('3')
  await unfold('words')
  const workers = page.getByRole('form', { name: 'Scale words 1.0' }).getByLabel('Workers')
  await workers.fill('4')
  watched.send('overview', overview([model({ state: 'loading', minWorkers: 2 })]))
  await row('words').getByText('loading').waitFor()
  expect(await workers.inputValue()).toBe('4')
  await page.getByLabel('Archive in the model store, or URL').fill('a.mar')
  await page.getByRole('button', { name: 'Register', exact: true }).click()
  await page.getByText('Done: POST').waitFor()
  expect(watched.calls).toEqual(['POST /models?url=a.mar&synchronous=true&initial_workers=3'])
})

test('the log is filtered by level and text, and stands still when paused', async () => {
  await follow('#log')
  const lines = [logLine('loaded'), logLine('slow', 'warn'), logLine('Traceback', 'error')]
  watched.send('log', { lines, dropped: 4 })
  await page.getByText('3 lines, 4 dropped by the server').waitFor()
  await page.getByLabel('Level').selectOption('warn')
  await page.getByText('2 lines').waitFor()
  await page.getByLabel('Search').fill('trace')
  await page.getByText('1 line').waitFor()
  await page.getByLabel('Search').fill('')
  await page.getByRole('button', { name: 'Pause' }).click()
  watched.send('log', { lines: [logLine('later', 'error')], dropped: 0 })
  await page.getByRole('button', { name: 'Continue' }).waitFor()
  expect(await page.getByText('later').count()).toBe(0)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('later').waitFor()
  await expectAccessible(page)
  await picture(page, 'log')
})

test('of a long log the last lines are shown, and a new connection brings them once', async () => {
  await follow('#log')
  const lines = Array.from({ length: 501 }, (_, index) => logLine(`line ${index} of many`))
  watched.send('log', { lines, dropped: 3 })
  await page.getByText('500 lines').waitFor()
  await page.getByText('line 500 of many').waitFor()
  expect(await page.getByText('line 0 of many').count()).toBe(0)
  watched.lose()
  await page.getByText('connection lost, trying again').waitFor()
  await page.getByRole('status').getByText('live', { exact: true }).waitFor()
  watched.send('log', { lines: lines.slice(-2), dropped: 0 })
  await page.getByText('2 lines', { exact: true }).waitFor()
})

test('a line of the log is found by its thread and its logger too', async () => {
  await follow('#log')
  const lines = [
    { ...logLine('one'), logger: 'ACCESS_LOG', thread: undefined },
    { ...logLine('two'), logger: 'ACCESS_LOG', thread: 'W-9001-words_1.0-stderr' },
    logLine('three'),
  ]
  watched.send('log', { lines, dropped: 0 })
  await page.getByLabel('Search').fill('access_LOG')
  await page.getByText('2 lines').waitFor()
  await page.getByLabel('Search').fill('w-9001')
  await page.getByText('1 line').waitFor()
  expect(await page.getByLabel('Log lines').locator('div').allTextContents()).toEqual([
    expect.stringMatching('two'),
  ])
})

test('who reads further up in the log stays there while lines come, and follows again from the end', async () => {
  await follow('#log')
  const lines = Array.from({ length: 100 }, (_, index) => logLine(`line ${index} of many`))
  watched.send('log', { lines, dropped: 0 })
  await page.getByText('line 99 of many').waitFor()
  // The page scrolls after it has drawn, but for one line before it draws the next.
  const top = async (...written: string[]): Promise<number> => {
    for (const message of written) {
      watched.send('log', { lines: [logLine(message)], dropped: 0 })
      await page.getByText(message).waitFor()
    }
    return page.evaluate<number>("document.querySelector('.log').scrollTop")
  }
  // Until the page has noticed it: it may be about to scroll to the end.
  const scroll = (to: string): Promise<number> =>
    page.evaluate<number>(`new Promise((resolve) => {
      const log = document.querySelector('.log')
      const wanted = ${to}
      log.onscroll = () => {
        if (Math.abs(log.scrollTop - wanted) > 1) return (log.scrollTop = wanted)
        log.onscroll = null
        resolve(log.scrollTop)
      }
      log.scrollTop = wanted
    })`)
  expect(await top('first written')).toBeGreaterThan(0)
  await scroll('0')
  expect(await top('second written', 'third written')).toBe(0)
  const end = await scroll('log.scrollHeight - log.clientHeight')
  expect(await top('fourth written', 'fifth written')).toBeGreaterThan(end)
})

test('lines that the server left out are counted together, from the first one on', async () => {
  await follow('#log')
  watched.send('log', { lines: [logLine('one')], dropped: 0 })
  await page.getByText('1 line', { exact: true }).waitFor()
  watched.send('log', { lines: [], dropped: 1 })
  await page.getByText('1 line, 1 dropped by the server').waitFor()
  watched.send('log', { lines: [], dropped: 2 })
  await page.getByText('1 line, 3 dropped by the server').waitFor()
})

test('the page forgets all but the last 2,000 lines of the log', async () => {
  await follow('#log')
  const lines = Array.from({ length: 2_000 }, (_, index) => logLine(`line ${index} of many`))
  watched.send('log', { lines, dropped: 0 })
  await page.getByText('line 1999 of many').waitFor()
  await page.getByLabel('Search').fill('line 0 of')
  await page.getByText('1 line', { exact: true }).waitFor()
  watched.send('log', { lines: [logLine('line 0 of others')], dropped: 0 })
  await page.getByText('line 0 of others').waitFor()
  expect(await page.getByText('line 0 of many').count()).toBe(0)
})

test('a letter whose bytes come in two pieces is whole', async () => {
  await follow()
  const event = eventBytes('overview', overview([model({ modelName: 'wörter' })]))
  const cut = event.indexOf('ö') + 1
  watched.write(Buffer.concat([eventBytes('overview', overview([model()])), event.subarray(0, cut)]))
  await row('words').waitFor()
  watched.write(event.subarray(cut))
  await row('wörter').waitFor()
})

test('a model that is unregistered takes its counts along, and no rate is negative', async () => {
  await follow()
  const counts = { ...model().counts, items: 900 }
  const at = (second: number): string => new Date(Date.UTC(2026, 0, 2, 3, 4, second)).toISOString()
  watched.send('overview', overview([model({ counts: { ...counts, items: 800 } })], { at: at(1) }))
  watched.send('overview', overview([model({ counts })], { at: at(2) }))
  await page.getByText('sent 100', { exact: true }).waitFor()
  watched.send('overview', overview([], { at: at(3) }))
  await page.getByText('No model is registered.').waitFor()
  expect(await page.getByText('sent 100', { exact: true }).count()).toBe(1)
  watched.send('overview', overview([], { at: at(4) }))
  await page.getByText('sent 0', { exact: true }).waitFor()
})

test('HTML in names, errors and log lines stays text', async () => {
  await follow()
  const failure = { id: EVIL, at: EVIL, reason: EVIL }
  const exit = { at: EVIL, cause: EVIL, lines: [EVIL] }
  const workers = [{ id: EVIL, state: EVIL, inFlight: 0, restarts: 0, lastExit: exit }]
  watched.send(
    'overview',
    overview([model({ modelName: EVIL, state: 'failed', failure, workers, runtime: EVIL })]),
  )
  await row(EVIL).waitFor()
  watched.send('requests', {
    at: '',
    total: 1,
    requests: [openRequest(1, { id: EVIL, client: EVIL, key: EVIL })],
  })
  await page.getByRole('link', { name: 'Requests' }).click()
  await page.getByRole('cell', { name: EVIL }).first().waitFor()
  watched.send('log', { lines: [logLine(EVIL)], dropped: 0 })
  await page.getByRole('link', { name: 'Log', exact: true }).click()
  // Until the page shows the view, the table of requests says the same.
  await page.getByLabel('Log lines').getByText(EVIL).waitFor()
  await page.getByRole('link', { name: 'Models' }).click()
  await unfold(EVIL)
  expect(await page.locator('img, #console script').count()).toBe(0)
})

test('a lost connection is said, with the time of what is shown, and made again', async () => {
  await follow()
  watched.send('overview', overview([model()]))
  await row('words').waitFor()
  watched.lose()
  await page.getByText('connection lost, trying again').waitFor()
  await page.getByText(/The page shows the state at \d\d:04:05/).waitFor()
  await page.getByRole('status').getByText('live', { exact: true }).waitFor()
  expect(await page.getByText('The page shows the state').count()).toBe(0)
  expect(watched.viewers).toBe(1)
})

test('events that fall silent are a lost connection, and made again', async () => {
  await follow()
  await page.clock.install()
  // The page sets its timers anew after each event.
  watched.send('overview', overview([model()]))
  await row('words').waitFor()
  await page.clock.fastForward(9_000)
  watched.send('overview', overview([model({ modelName: 'still' })]))
  await row('still').waitFor()
  await page.clock.fastForward(11_000)
  await page.getByText('connection lost, trying again').waitFor()
  await page.clock.fastForward(1_000)
  await page.getByRole('status').getByText('live', { exact: true }).waitFor()
})

test('tries to connect come ever later, up to ten seconds, and soon again after a connection', async () => {
  await follow()
  await page.clock.install()
  await page.clock.pauseAt(Date.now() + 60_000)
  await page.evaluate(RECORD_TRIES)
  const waits = async (milliseconds: number): Promise<number[]> => {
    const from = await page.evaluate<number>('tries = [], Date.now()')
    watched.lose()
    await page.getByText('connection lost, trying again').waitFor()
    await page.clock.runFor(milliseconds)
    const tries = await page.evaluate<number[]>('tries')
    return tries.map((at, index) => at - (tries[index - 1] ?? from))
  }
  expect(await waits(40_000)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000])
  await page.evaluate('isDown = false')
  await page.clock.runFor(10_000)
  await page.getByRole('status').getByText('live', { exact: true }).waitFor()
  await page.evaluate('isDown = true')
  expect(await waits(2_000)).toEqual([500, 1_000])
})

test('the first line names the failed model and its cause, and says when all is well', async () => {
  await follow()
  const health = page.getByRole('region', { name: 'Health' })
  const failure = { id: 'f-1', at: '2026-01-02T03:04:05.000Z', reason: 'Cannot find module weights' }
  watched.send('overview', overview([]))
  await health.getByText('No model is registered. Register one below.').waitFor()
  watched.send('overview', overview([model(), model({ modelName: 'nouns' })]))
  await health.getByText('All is well: 2 of 2 models ready').waitFor()
  watched.send('overview', overview([model(), model({ modelName: 'nouns', state: 'failed', failure })]))
  await health.getByText('1 of 2 models has a problem.').waitFor()
  expect(await health.getByRole('listitem').allTextContents()).toEqual([
    'nouns 1.0 failed to load: Cannot find module weights Log',
  ])
  expect(
    await page.evaluate<number>("document.querySelector('.verdict').getBoundingClientRect().top"),
  ).toBeLessThan(80)
  // It is the first row, too.
  expect(await page.locator('.models tbody tr').first().textContent()).toContain('nouns')
  await page.getByRole('link', { name: 'Playground' }).click()
  await page.getByRole('link', { name: '1 problem' }).click()
  await health.getByRole('link', { name: 'nouns 1.0' }).click()
  await page.getByRole('alert').getByText('Cannot find module weights').waitFor()
})

test('a model of the start that could not be loaded is a problem, first in the table, and goes when asked', async () => {
  await follow()
  const health = page.getByRole('region', { name: 'Health' })
  const failure = { id: 'f-1', at: '2026-01-02T03:04:05.000Z', reason: 'The archive is truncated' }
  const failed = [{ modelName: 'bad', url: 'bad.mar', failure }]
  watched.send('overview', overview([model()], { failed }))
  await health.getByText('1 of 2 models has a problem.').waitFor()
  expect(await health.getByRole('listitem').allTextContents()).toEqual([
    'bad failed to load: The archive is truncated Log',
  ])
  const row = page.locator('.models tbody tr').first()
  expect(await row.textContent()).toContain('bad')
  expect((await row.locator('td').allTextContents()).slice(1)).toEqual(Array(7).fill('–'))
  await page.getByRole('link', { name: 'Log', exact: true }).first().click()
  await page.getByRole('link', { name: '1 problem' }).click()
  await health.getByRole('link', { name: 'bad' }).click()
  await page.getByRole('alert').getByText('The archive is truncated').waitFor()
  await page.getByText('bad.mar').waitFor()
  await expectAccessible(page)
  await page.getByRole('button', { name: 'Unregister', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Unregister bad' }).click()
  await page.getByRole('status').getByText('Unregister bad: Done').waitFor()
  expect(watched.calls).toEqual(['DELETE /models/bad'])
  watched.send('overview', overview([], { failed }))
  await health.getByText('1 of 1 model has a problem.').waitFor()
  watched.send('overview', overview([model()]))
  await health.getByText('All is well: 1 of 1 model ready').waitFor()
})

test('a server that requires a key since its restart asks for one, and says nothing of an old one', async () => {
  await follow()
  watched.send('overview', overview([model()]))
  await row('words').waitFor()
  watched.token = 'right'
  watched.lose()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('The server now requires a key').waitFor()
  expect(await dialog.getByRole('alert').count()).toBe(0)
  await dialog.getByLabel('Key', { exact: true }).fill('right')
  await dialog.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('status').getByText('live').waitFor()
})

test('a model whose requests fail is not plainly ready: the row has rate, count and error code', async () => {
  await follow()
  const none = { finished: 0, failed: 0, cancelled: 0, timed_out: 0, client_stalled: 0 }
  const failing = (second: number, failed: number): void => {
    const at = new Date(Date.UTC(2026, 0, 2, 3, 4, second)).toISOString()
    const last = { at, requestId: 'id-00009', reason: 'no tokenizer' }
    const errors = [{ code: 'HANDLER_FAILED', count: failed, ...last }]
    const counts = { unary: { ...none, failed }, stream: none, items: 0, bytes: 0 }
    watched.send('overview', overview([model({ failedInARow: failed, errors, counts })], { at }))
  }
  failing(1, 10)
  await row('words').getByText('All 10 requests failed: HANDLER_FAILED, no tokenizer').waitFor()
  failing(5, 30)
  const cells = row('words').getByRole('cell')
  await cells.getByText('5 (30)').waitFor()
  expect((await cells.allTextContents()).slice(0, 3)).toEqual([
    'failing All 30 requests failed: HANDLER_FAILED, no tokenizer',
    '5',
    '5 (30)',
  ])
  expect(await row('words').getByText('ready').count()).toBe(0)
  await unfold('words')
  await page
    .getByRole('region', { name: 'Failures' })
    .getByRole('row', { name: /^HANDLER_FAILED 30 / })
    .waitFor()
  const other = { at: '2026-01-02T03:04:07.000Z', requestId: 'id-00010', reason: 'a number' }
  const errors = [
    { code: 'HANDLER_FAILED', count: 4, at: '2026-01-02T03:04:06.000Z', requestId: 'id-00009', reason: 'x' },
    { code: 'HANDLER_REJECTED', count: 1, ...other },
  ]
  const counts = { unary: { ...none, failed: 5 }, stream: none, items: 0, bytes: 0 }
  const at = '2026-01-02T03:04:08.000Z'
  watched.send('overview', overview([model({ failedInARow: 5, errors, counts })], { at }))
  await row('words').getByText('All 5 requests failed, the last with HANDLER_REJECTED, a number').waitFor()
  failing(9, 30)
  await expectAccessible(page)
  const line = { ...logLine('id-00009 HANDLER_FAILED: no tokenizer', 'error'), thread: 'W-9000-words_1.0' }
  watched.send('log', { lines: [logLine('another'), line], dropped: 0 })
  await page.getByRole('link', { name: 'id-00009' }).click()
  await page.getByText('1 line', { exact: true }).waitFor()
  expect(await page.getByLabel('Log lines').textContent()).toContain('no tokenizer')
})

test('the log has the lines of one model, and the id of a failed request leads to its lines', async () => {
  await follow('#log?model=words%201.0')
  watched.send('overview', overview([model(), model({ modelName: 'nouns' })]))
  const lines = [
    logLine('of words'),
    { ...logLine('of nouns'), thread: 'W-9001-nouns_1.0' },
    { ...logLine('of the server'), thread: undefined },
    { ...logLine('id-1 HANDLER_FAILED: Error: no', 'error'), thread: 'W-9001-nouns_1.0' },
  ]
  watched.send('log', { lines, dropped: 0 })
  await page.getByText('1 line', { exact: true }).waitFor()
  await page.getByText('of words').waitFor()
  await page.getByLabel('Model').selectOption('nouns 1.0')
  await page.getByText('2 lines', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'id-1' }).click()
  await page.getByText('1 line', { exact: true }).waitFor()
  expect(await page.getByLabel('Search').inputValue()).toBe('id-1')
})

test('the playground begins with the example of each model, and with one that can answer', async () => {
  await follow('#playground')
  const failure = { id: 'f-1', at: '2026-01-02T03:04:05.000Z', reason: 'Cannot find module weights' }
  watched.send(
    'overview',
    overview([
      model({ modelName: 'broken', state: 'failed', failure }),
      model({ modelName: 'chats', methods: ['chatCompletions'] }),
      model({ modelName: 'tensors', methods: ['predict'] }),
      model({ modelName: 'text', methods: ['handle'] }),
      model({ modelName: 'vectors', methods: ['embeddings'] }),
    ]),
  )
  const api = page.getByLabel('API', { exact: true })
  const body = page.getByLabel('Body')
  const shown = async (): Promise<[string, unknown]> => {
    const text = await body.inputValue()
    return [await api.inputValue(), text.startsWith('{') ? JSON.parse(text) : text]
  }
  await body.waitFor()
  expect(await page.getByLabel('Model').inputValue()).toBe('chats 1.0')
  const messages = [{ role: 'user', content: 'Tell me a story' }]
  expect(await shown()).toEqual(['chat/completions', { model: 'chats', stream: true, messages }])
  await page.getByLabel('Model').selectOption('tensors')
  const inputs = [{ name: 'input', datatype: 'BYTES', shape: [1], data: ['Hello'] }]
  expect(await shown()).toEqual(['infer', { inputs }])
  await page.getByLabel('Model').selectOption('text')
  expect(await shown()).toEqual(['predictions', 'Once upon a time'])
  await page.getByLabel('Model').selectOption('vectors')
  expect(await shown()).toEqual(['embeddings', { model: 'vectors', input: 'Once upon a time' }])
  await page.getByLabel('Model').selectOption('broken')
  await page.getByRole('alert').getByText('This model failed to load: Cannot find module weights').waitFor()
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByRole('status').getByText('Status 404, failed').waitFor()
  expect(await page.getByLabel('Inference key').count()).toBe(0)
  await expectAccessible(page)
})

test('on a phone the navigation is one row, keys have their values, and Cancel is in sight', async () => {
  await follow('#requests')
  await page.setViewportSize({ width: 390, height: 844 })
  const failure = { id: 'f-1', at: '2026-01-02T03:04:05.000Z', reason: 'Cannot find module weights' }
  watched.send('overview', overview([model(), model({ modelName: 'nouns', state: 'failed', failure })]))
  watched.send('requests', { at: '', total: 1, requests: [openRequest(1)] })
  const cancel = page.getByRole('button', { name: 'Cancel id-00001' })
  const { x, width } = (await cancel.boundingBox())!
  expect(x + width).toBeLessThanOrEqual(390)
  const tops = page.evaluate<number[]>(
    "[...document.querySelectorAll('nav a')].map((each) => each.getBoundingClientRect().top)",
  )
  expect(new Set(await tops).size).toBe(1)
  for (const view of ['Models', 'Requests', 'Playground', 'Log']) {
    await page.getByRole('link', { name: view, exact: true }).click()
    const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    expect([view, overflow]).toEqual([view, 0])
    await expectAccessible(page)
    await picture(page, `phone-${view.toLowerCase()}`)
  }
})

test('these tests notice a broken policy', async () => {
  await open()
  await page.evaluate(`new Promise((resolve) => {
    addEventListener('securitypolicyviolation', resolve)
    document.body.setAttribute('style', 'color: red')
  })`)
  await page.evaluate("toldViolation('after it')")
  expect(faults.splice(0)).toEqual(['broke the policy: style-src-attr inline', 'broke the policy: after it'])
})

test('the page has less than 100 KB, packed', async () => {
  await open()
  const folder = join(REPOSITORY, 'dist', 'frontend', 'console')
  const packed = readdirSync(folder).map((file) => gzipSync(readFileSync(join(folder, file))).length)
  expect(packed.reduce((sum, size) => sum + size)).toBeLessThan(100_000)
})
