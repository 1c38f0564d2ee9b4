import { existsSync, readdirSync, readFileSync } from 'node:fs'
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

/** Links to files, and pictures in HTML. */
const LINK = /(?:\]\(|\b(?:src|srcset)=")(?!https?:)([^)\s"]+)/g

test('every link between pages leads to a file, and to a heading that is there', () => {
  const links = PAGES.flatMap((page) =>
    [...prose(page).matchAll(LINK)].map((match) => [page, match[1]!] as const),
  )
  expect(links.length).toBeGreaterThan(60)
  expect(links.map(([page, link]) => problem(page, link)).filter((text) => text !== undefined)).toEqual([])
})

test('the pictures of the console and of the dashboard are shown, each light and dark, and are small', () => {
  const folder = join(REPOSITORY, 'docs', 'pictures')
  const shown = PAGES.flatMap((page) =>
    [...prose(page).matchAll(LINK)].map((match) => join(REPOSITORY, dirname(page), match[1]!)),
  )
  const pictures = readdirSync(folder).map((name) => join(folder, name))
  expect(pictures.length).toBeGreaterThan(0)
  expect(pictures.filter((path) => !shown.includes(path))).toEqual([])
  for (const path of pictures) {
    expect(pictures).toContain(
      path.replace(/-(light|dark)\.png$/, (_, theme) => `-${theme === 'dark' ? 'light' : 'dark'}.png`),
    )
    const bytes = readFileSync(path)
    expect(bytes.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n')
    expect([path, bytes.length > 5_000, bytes.length <= 60_000]).toEqual([path, true, true])
  }
})

test('each row of the dashboard has its pictures', () => {
  type Panel = { type: string; title: string }
  const { panels } = JSON.parse(read('deploy/grafana/torchserve-ts.json')) as { panels: Panel[] }
  const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title)
  const pictures = readdirSync(join(REPOSITORY, 'docs', 'pictures'))
    .filter((name) => /^panels-.*-light\.png$/.test(name))
    .map((name) => name.slice('panels-'.length, -'-light.png'.length))
  expect(pictures.sort()).toEqual(rows.map((title) => title.split(/\W/)[0]!.toLowerCase()).sort())
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

/** Paths below tests/, also within commands; `{a,b}` stands for several. */
const TEST = /(?<![\w/.-])tests\/[\w/.{},-]*\w\}?/g

test('every test that a page names is there', () => {
  const named = PAGES.flatMap((page) => [...read(page).matchAll(TEST)].map(([path]) => ({ page, path })))
  const paths = named.flatMap(({ page, path }) => withAlternatives(path).map((each) => `${page}: ${each}`))
  expect(paths.length).toBeGreaterThan(200)
  expect(paths.filter((each) => !isTest(each.split(': ')[1]!))).toEqual([])
})

test('every test in the tables of what each protocol promises is there', () => {
  const page = 'docs/internals/promises.md'
  const names = [...read(page).matchAll(/`(?!tests\/)([a-z0-9]+\/[a-z0-9/-]+)`/g)].map(
    ([, name]) => `tests/${name}`,
  )
  expect(names.length).toBeGreaterThan(40)
  expect(names.filter((name) => !existsSync(join(REPOSITORY, `${name}.test.ts`)))).toEqual([])
})

/** `a/{b,c}` as a/b and a/c. */
function withAlternatives(path: string): string[] {
  const [, head, list, tail] = /^(.*)\{(.*)\}(.*)$/.exec(path) ?? []
  return list === undefined ? [path] : list.split(',').map((each) => `${head}${each}${tail}`)
}

/** A file or folder, a test without its ending, or a place for files of the reader (findings, TARGET). */
function isTest(path: string): boolean {
  const whole = path.replace(/\/TARGET$/, '')
  if (whole === 'tests/fuzz/findings') return true
  return ['', '.test.ts'].some((ending) => existsSync(join(REPOSITORY, whole + ending)))
}

test('no page cites a document that readers cannot open', () => {
  expect(PAGES.filter((page) => /\(?\bspec \d/.test(read(page)))).toEqual([])
})
