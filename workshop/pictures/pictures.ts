import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { smallPng } from './small-png.ts'

/** Pictures of the documentation, each in both themes. */
export const THEMES = ['light', 'dark'] as const
export type Theme = (typeof THEMES)[number]
/** Of each picture, in pixels. */
export const WIDTH = 1280

const FOLDER = join(import.meta.dirname, '..', '..', 'docs', 'pictures')
const MAX_BYTES = 60_000

/** Writes the picture of a page into docs/pictures. @throws Error: it is too large */
export async function takePicture(page: Page, view: string, theme: Theme, fullPage = false): Promise<void> {
  const path = join(FOLDER, `${view}-${theme}.png`)
  const bytes = smallPng(await page.screenshot({ fullPage }))
  if (bytes.length > MAX_BYTES)
    throw new Error(`${path} has ${bytes.length} bytes, and must have ${MAX_BYTES} at most`)
  writeFileSync(path, bytes)
  console.log(`${path}: ${bytes.length} bytes`)
}
