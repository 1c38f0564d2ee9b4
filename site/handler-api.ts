import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Application, type TypeDocOptions } from 'typedoc'
import type { PluginOptions } from 'typedoc-plugin-markdown'
import { slug } from './slug.ts'

/** The module of each page, as handlers import it. */
const MODULES: ReadonlyMap<string, string> = new Map([
  ['index', 'torchserve-ts'],
  ['testing', 'torchserve-ts/testing'],
])

/**
 * Writes one page for each module that handler authors import, from the comments of the code.
 * @throws when TypeDoc cannot read a module, or a comment refers to something that is not there
 */
export async function writeHandlerApi(root: string, folder: string): Promise<void> {
  const options: Partial<TypeDocOptions & PluginOptions> = {
    entryPoints: [...MODULES.keys()].map((name) => join(root, 'backend-worker', `${name}.ts`)),
    tsconfig: join(root, 'tsconfig.json'),
    plugin: ['typedoc-plugin-markdown'],
    readme: 'none',
    // The types of the whole repository are checked elsewhere.
    skipErrorChecking: true,
    logLevel: 'Warn',
    disableSources: true,
    hidePageHeader: true,
    hideBreadcrumbs: true,
    entryFileName: 'modules',
    router: 'module',
    // Without it TypeDoc would empty and fill docs.
    out: folder,
  }
  const app = await Application.bootstrapWithPlugins(options)
  const project = await app.convert()
  if (project === undefined) throw new Error('TypeDoc could not read the modules of the handler API')
  await app.outputs.writeOutput({ name: 'markdown', path: folder }, project)
  if (app.logger.hasErrors()) throw new Error('TypeDoc could not write the pages of the handler API')
  for (const [name, module] of MODULES) {
    const text = readFileSync(join(folder, `${name}.md`), 'utf8').replace(`# ${name}\n`, `# ${module}\n`)
    writeFileSync(join(folder, `${name}.md`), withAnchors(text, folder, name))
  }
  rmSync(join(folder, 'modules.md'))
}

/** A link to a heading that TypeDoc takes for one of several with the same text, which it not always is. */
const NUMBERED = /\]\(((?:\w+\.md)?)#(([\w-]+)-\d+)\)/g

function withAnchors(text: string, folder: string, name: string): string {
  return text.replace(NUMBERED, (link: string, page: string, anchor: string, base: string) => {
    const target = readFileSync(join(folder, page === '' ? `${name}.md` : page), 'utf8')
    return slugsOf(target).has(anchor) ? link : `](${page}#${base})`
  })
}

/** The anchors of a page: of several headings with the same text, the second has -1, and so on. */
function slugsOf(text: string): Set<string> {
  const slugs = new Set<string>()
  for (const [, heading] of text.matchAll(/^#+ (.*)$/gm)) {
    const base = slug(heading!)
    let unique = base
    for (let i = 1; slugs.has(unique); i++) unique = `${base}-${i}`
    slugs.add(unique)
  }
  return slugs
}
