import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import MiniSearch from 'minisearch'

/** Words that the search must find, and a page that must be among the first ten. */
const SEARCHES = [
  ['cancel', '/protocols'],
  ['job_queue_size', '/configuration'],
  ['chatCompletions', '/openai'],
] as const

/**
 * Checks a built site: that its search, which needs no server, finds what it should, and that every link
 * within it leads to a page, and to a heading that is there. VitePress itself does not look at headings.
 * @returns what is wrong
 */
export function problemsOf(site: string): string[] {
  return [...searchProblems(site), ...linkProblems(site)]
}

function searchProblems(site: string): string[] {
  const chunks = join(site, 'assets', 'chunks')
  const file = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndex'))
  if (file === undefined) return ['The site has no search index']
  const [, text] = /^const \w+=(['"`])(.*)\1;/s.exec(readFileSync(join(chunks, file), 'utf8'))?.slice(1) ?? []
  if (text === undefined) return [`${file} cannot be read`]
  // As VitePress reads it.
  const index = MiniSearch.loadJSON(unquoted(text), {
    fields: ['title', 'titles', 'text'],
    storeFields: ['title', 'titles'],
  })
  return SEARCHES.flatMap(([words, page]) => {
    const found = index.search(words, { prefix: true, boost: { title: 4, text: 2, titles: 1 } })
    const pages = found.slice(0, 10).map(({ id }) => String(id))
    return pages.some((id) => id.startsWith(page))
      ? []
      : [`The search for ${words} must find ${page}, found ${pages.join(', ') || 'nothing'}`]
  })
}

/** The text of a JavaScript string literal. */
function unquoted(text: string): string {
  return text.replace(/\\(u[0-9a-f]{4}|x[0-9a-f]{2}|.)/gis, (whole, code: string) =>
    code.length > 1 ? String.fromCharCode(parseInt(code.slice(1), 16)) : (ESCAPES.get(code) ?? code ?? whole),
  )
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['b', '\b'],
  ['f', '\f'],
])

function linkProblems(site: string): string[] {
  const pages = readdirSync(site, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.html'))
    .map((path) => path.replaceAll('\\', '/'))
  const html = new Map(pages.map((path) => [path, readFileSync(join(site, path), 'utf8')]))
  const anchors = new Map(
    [...html].map(([path, text]) => [
      path,
      new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!)),
    ]),
  )
  return [...html].flatMap(([path, text]) =>
    [...text.matchAll(/<a [^>]*?href="([^"]+)"/g)]
      .map(([, link]) => link!)
      .filter((link) => !/^[a-z]+:/.test(link) && !isAsset(link))
      .filter((link) => !leadsSomewhere(path, link, anchors))
      .map((link) => `${path}: ${link} leads nowhere`),
  )
}

function isAsset(link: string): boolean {
  return link.startsWith('/assets/')
}

function leadsSomewhere(
  path: string,
  link: string,
  anchors: ReadonlyMap<string, ReadonlySet<string>>,
): boolean {
  const [target = '', anchor] = decodeURIComponent(link.replaceAll('&amp;', '&')).split('#')
  const page = target === '' ? path : posix.join(target.startsWith('/') ? '' : dirname(path), target)
  const ids = anchors.get(page.replace(/^\.?\//, '').replace(/(^|\/)$/, '$1index.html'))
  return ids !== undefined && (anchor === undefined || anchor === '' || ids.has(anchor))
}
