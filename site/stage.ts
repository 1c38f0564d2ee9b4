import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import { referencePages } from './reference.ts'

const ROOT = join(import.meta.dirname, '..')
/** Where the pages of the site are put together: docs and what is generated from the code. */
export const PAGES = join(ROOT, '.build', 'site', 'pages')
/** What is built. */
export const SITE = join(ROOT, '.build', 'site', 'dist')
/** The page of `docs` at the root of the site. */
const HOME = 'get-started.md'
const ON_THE_WEB = 'https://github.com/torchserve-ts/torchserve-ts/blob/main'

/** Pages of the repository by their path in it, and their path in the site. */
export function repositoryPages(): Map<string, string> {
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.md'))
  return new Map([
    ['CHANGELOG.md', 'changelog.md'],
    ['CONTRIBUTING.md', 'contributing.md'],
    ['SECURITY.md', 'vulnerabilities.md'],
    ...docs.map((path) => [`docs/${path}`, path === HOME ? 'index.md' : path] as const),
  ])
}

/** Pages for maintainers, the changelog, and the output of --help are not searched. */
export function isSearched(page: string): boolean {
  return !/^(internals\/|(contributing|vulnerabilities|changelog|reference\/commands)\.md$)/.test(page)
}

/** Writes all pages into {@link PAGES}, which is emptied first. */
export async function stage(): Promise<void> {
  rmSync(PAGES, { recursive: true, force: true })
  const pages = repositoryPages()
  for (const [path, page] of pages) write(page, withLinks(path, pages))
  for (const assets of ['internals/growth', 'pictures'])
    cpSync(join(ROOT, 'docs', assets), join(PAGES, assets), { recursive: true })
  for (const [page, text] of await referencePages(join(PAGES, 'reference', 'api'))) write(page, text)
}

function write(page: string, text: string): void {
  mkdirSync(dirname(join(PAGES, page)), { recursive: true })
  writeFileSync(join(PAGES, page), text)
}

/** A page with its links as the site needs them; code blocks stay as they are. */
function withLinks(path: string, pages: ReadonlyMap<string, string>): string {
  const text = readFileSync(join(ROOT, path), 'utf8')
  return text
    .split(/(^```.*?^```)/ms)
    .map((part, i) =>
      i % 2 === 1 ? part : part.replace(LINK, (_, begin: string, link: string) => `${begin}${moved(link)}`),
    )
    .join('')

  function moved(link: string): string {
    const [target = '', anchor] = link.split('#')
    const inRepository = posix.join(posix.dirname(path), target)
    const suffix = anchor === undefined ? '' : `#${anchor}`
    const isAsset = inRepository.startsWith('docs/') && !inRepository.endsWith('.md')
    const place = isAsset ? inRepository.slice('docs/'.length) : pages.get(inRepository)
    if (place !== undefined) {
      const from = posix.dirname(pages.get(path)!)
      const to = relative(from, place).replaceAll('\\', '/')
      return `${to.startsWith('.') ? '' : './'}${to}${suffix}`
    }
    // What is not there stays as it is: VitePress fails, and names page and link.
    return existsSync(join(ROOT, inRepository)) ? `${ON_THE_WEB}/${inRepository}${suffix}` : link
  }
}

/** Links to files, and pictures in HTML; not to the web, and not to a heading of the same page. */
const LINK = /(\]\(|\b(?:src|srcset)=")(?!https?:|#)([^)\s"]+)/g
