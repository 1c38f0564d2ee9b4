import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from '@jest/globals'
import { slug } from '../../site/slug.ts'
import { REPOSITORY } from '../support/server.ts'
import { PAGES } from './blocks.ts'

function read(page: string): string {
  return readFileSync(join(REPOSITORY, page), 'utf8')
}

/** The text without code, where `](` and `#` have other meanings. */
function prose(page: string): string {
  return read(page).replace(/^```.*?^```/gms, '')
}

/** Anchors as GitHub makes them from headings. */
function anchors(page: string): string[] {
  return [...prose(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => slug(heading!))
}

/** What is wrong with a link of a page; undefined: nothing. */
function problem(page: string, link: string): string | undefined {
  const [path, anchor] = link.split('#') as [string, string?]
  const target = path === '' ? page : join(dirname(page), path)
  if (!existsSync(join(REPOSITORY, target))) return `${page}: ${link} does not exist`
  if (anchor === undefined || !target.endsWith('.md') || anchors(target).includes(anchor)) return undefined
  return `${page}: ${target} has no heading #${anchor}`
}

test('every link between pages leads to a file, and to a heading that is there', () => {
  const links = PAGES.flatMap((page) =>
    [...prose(page).matchAll(/\]\((?!https?:)([^)]+)\)/g)].map((match) => [page, match[1]!] as const),
  )
  expect(links.length).toBeGreaterThan(60)
  expect(links.map(([page, link]) => problem(page, link)).filter((text) => text !== undefined)).toEqual([])
})

const ON_THE_WEB = /\]\(https:\/\/github\.com\/torchserve-ts\/torchserve-ts\/(?:blob|tree)\/main\/([^)#]+)/g

test('links to the repository on the web lead to something that is in it', () => {
  const links = PAGES.flatMap((page) =>
    [...prose(page).matchAll(ON_THE_WEB)].map((match) => [page, match[1]!] as const),
  )
  expect(links.length).toBeGreaterThan(5)
  expect(links.filter(([, path]) => !existsSync(join(REPOSITORY, path)))).toEqual([])
})

test('a page of the package links only to files of the package, or to the web', () => {
  const { files } = JSON.parse(read('package.json')) as { files: string[] }
  const isShipped = (path: string): boolean =>
    ['README.md', 'LICENSE', ...files].some((each) => path === each || path.startsWith(`${each}/`))
  const lost = PAGES.filter(isShipped).flatMap((page) =>
    [...prose(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
      .map((match) => join(dirname(page), match[1]!))
      .filter((target) => !isShipped(target))
      .map((target) => `${page}: ${target}`),
  )
  expect(lost).toEqual([])
})

test('no page cites a document that readers cannot open', () => {
  expect(PAGES.filter((page) => /\(?\bspec \d/.test(read(page)))).toEqual([])
})
