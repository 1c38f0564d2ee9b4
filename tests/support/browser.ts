import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect } from '@jest/globals'
import { type Browser, chromium, type Page } from 'playwright-core'
import { chromiumPath } from '../../workshop/pictures/chromium.ts'
import { REPOSITORY } from './server-process.ts'

/** Where `npm run test:console` leaves its pictures. */
const PICTURES = join(REPOSITORY, '.build', 'console')

let browser: Browser | undefined

afterAll(() => browser?.close())

/** A page of a browser, and what it did that the console must not do. */
export interface Opened {
  readonly page: Page
  /** Requests to other hosts, violations of the content security policy, and uncaught errors. */
  readonly faults: string[]
}

/** The event says what a page's policy refused; texts on the browser's console differ between versions. */
const TELL_VIOLATIONS = `addEventListener('securitypolicyviolation', (event) =>
  toldViolation(event.effectiveDirective + ' ' + event.blockedURI))`

/** Opens an address in a tab of its own. */
export async function openPage(url: string, dark = false): Promise<Opened> {
  browser ??= await chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox'] })
  const page = await browser.newPage({
    colorScheme: dark ? 'dark' : 'light',
    viewport: { width: 1280, height: 900 },
  })
  page.setDefaultTimeout(20_000)
  const faults: string[] = []
  const { host } = new URL(url)
  page.on('request', (request) => {
    const asked = new URL(request.url())
    if (asked.protocol !== 'data:' && asked.host !== host) faults.push(`asked ${asked.host}`)
  })
  page.on('pageerror', (error) => faults.push(`threw ${String(error)}`))
  page.on('dialog', (dialog) => {
    faults.push(`ran a script: ${dialog.message()}`)
    void dialog.dismiss()
  })
  await page.exposeFunction('toldViolation', (what: string) => faults.push(`broke the policy: ${what}`))
  await page.addInitScript(TELL_VIOLATIONS)
  await page.goto(url)
  return { page, faults }
}

/** Runs axe on the page as it is; serious findings and worse fail the test. */
export async function expectAccessible(page: Page): Promise<void> {
  // Evaluated by the debugger, not loaded: the page's policy would refuse it.
  await page.evaluate(await axeSource())
  const findings = await page.evaluate<{
    violations: { impact: string; id: string; nodes: { html: string }[] }[]
  }>('axe.run()')
  const serious = findings.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  expect(serious.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
}

/** A picture of the page, for people to look at. */
export async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES, { recursive: true })
  await page.screenshot({ path: join(PICTURES, `${name}.png`) })
}

async function axeSource(): Promise<string> {
  const { default: axe } = await import('axe-core')
  return axe.source
}
