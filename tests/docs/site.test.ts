import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import MiniSearch from 'minisearch'
import { problemsOf, SEARCHES } from '../../site/check.ts'
import { sidebar } from '../../site/sidebar.ts'
import { repositoryPages } from '../../site/stage.ts'
import { tempDir } from '../support/temp.ts'

/** A built site with these pages, and with a search index of them as VitePress writes it. */
function site(pages: Readonly<Record<string, string>>): string {
  const folder = tempDir()
  const chunks = join(folder, 'assets', 'chunks')
  mkdirSync(chunks, { recursive: true })
  const index = new MiniSearch({ fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles'] })
  for (const [path, html] of Object.entries(pages)) {
    writeFileSync(join(folder, path), html)
    index.add({ id: `/${path}`, title: path, titles: [], text: html.replace(/<[^>]*>/g, ' ') })
  }
  const literal = `'${JSON.stringify(index).replace(/[\\']/g, '\\$&')}'`
  writeFileSync(join(chunks, '@localSearchIndexroot.x.js'), `const e=${literal};export{e as default};`)
  return folder
}

const PAGES = {
  'index.html':
    '<h1 id="top">It’s the "index"</h1><a href="/protocols.html#cancel">to cancel</a><a href="./">home</a>',
  'protocols.html': '<h2 id="cancel">How to cancel</h2><a href="#cancel">up</a>',
  'configuration.html': 'job_queue_size',
  'openai.html': 'chatCompletions',
}

const WORDS = [
  ['cancel', '/protocols'],
  ['job_queue_size', '/configuration'],
  ['chatCompletions', '/openai'],
] as const

test('a site whose links lead somewhere and whose search finds is right', () => {
  expect(problemsOf(site(PAGES), WORDS)).toEqual([])
  expect(SEARCHES.length).toBeGreaterThanOrEqual(30)
})

test('a link to a page or heading that is not there is a problem, and so is a search that misses', () => {
  const broken = {
    ...PAGES,
    'protocols.html':
      '<h2 id="end">The end</h2><a href="/gone.html">gone</a><a class="x" href="#nowhere">nowhere</a>',
  }
  expect(problemsOf(site(broken), WORDS)).toEqual([
    'The search for cancel must find /protocols first, found /index',
    'index.html: /protocols.html#cancel leads nowhere',
    'protocols.html: /gone.html leads nowhere',
    'protocols.html: #nowhere leads nowhere',
  ])
})

test('every page has a place in the sidebar', () => {
  const titles = new Map([...repositoryPages().values()].map((page) => [page.replace(/\.md$/, ''), page]))
  expect(sidebar(titles).find(({ text }) => text === 'More')).toBeUndefined()
  const more = sidebar(new Map([...titles, ['news', 'News']])).at(-1)
  expect(more).toEqual({ text: 'More', items: [{ text: 'News', link: '/news' }] })
})
