import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import MiniSearch from 'minisearch'

/** As the search box of VitePress has it. */
export const SEARCH = { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 } }

/** What people search for, and the page that must come first. */
export const SEARCHES: readonly (readonly [words: string, page: string])[] = [
  ['install', '/'],
  ['docker', '/docker'],
  ['timeout', '/time-limits'],
  ['streaming', '/handlers/stream'],
  ['cancel', '/security'],
  ['batching', '/batching'],
  ['gpu', '/configuration'],
  ['tool calls', '/handlers/tool-calls'],
  ['auth', '/authorization'],
  ['api key', '/authorization'],
  ['metrics', '/metrics-and-logs'],
  ['logging', '/metrics-and-logs'],
  ['kubernetes', '/kubernetes'],
  ['helm', '/helm'],
  ['windows', '/'],
  ['upgrade', '/deploying'],
  ['systemd', '/deploying'],
  ['tls', '/tls'],
  ['console', '/console'],
  ['python', '/python-archives'],
  ['onnx', '/'],
  ['gguf', '/'],
  ['openai', '/openai'],
  ['triton', '/open-inference'],
  ['kserve', '/kubernetes'],
  ['seldon', '/seldon'],
  ['workflow', '/workflows'],
  ['autoscaling', '/autoscaling'],
  ['canary', '/canary'],
  ['snapshot', '/snapshots'],
  ['tracing', '/tracing'],
  ['testing', '/handlers/testing'],
  ['config.properties', '/configuration'],
  ['migrate', '/migrating-from-torchserve'],
  ['grpc', '/grpc'],
  ['dashboard', '/dashboards'],
]

/**
 * Checks a built site: that its search, which needs no server, finds what it should, and that every link
 * within it leads to a page, and to a heading that is there. VitePress itself does not look at headings.
 * @param searches words, and the page that must be the first hit
 * @returns what is wrong
 */
export function problemsOf(site: string, searches = SEARCHES): string[] {
  return [...searchProblems(site, searches), ...linkProblems(site)]
}

function searchProblems(site: string, searches: typeof SEARCHES): string[] {
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
  return searches.flatMap(([words, page]) => {
    const [first] = index.search(words, SEARCH)
    const id = String(first?.id ?? 'nothing').replace(/(\.html)?(#.*)?$/, '')
    return id === page ? [] : [`The search for ${words} must find ${page} first, found ${id}`]
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
