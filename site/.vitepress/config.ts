import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'
import { sidebar } from '../sidebar.ts'
import { slug } from '../slug.ts'
import { isSearched, PAGES, SITE } from '../stage.ts'

function titles(): Map<string, string> {
  const pages = readdirSync(PAGES, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.md'),
  )
  return new Map(
    pages.map((path) => {
      const [, title = path] = /^# (.*)$/m.exec(readFileSync(join(PAGES, path), 'utf8')) ?? []
      return [path.replaceAll('\\', '/').replace(/\.md$/, ''), title.replaceAll('`', '')]
    }),
  )
}

export default defineConfig({
  title: 'torchserve-ts',
  description: 'A streaming model server in TypeScript, in the shape of TorchServe',
  srcDir: PAGES,
  outDir: SITE,
  cacheDir: join(PAGES, '..', 'cache'),
  // A link to a page that is not there fails the build.
  ignoreDeadLinks: [/^https?:\/\/(localhost|127\.0\.0\.1)/],
  markdown: { anchor: { slugify: slug } },
  themeConfig: {
    sidebar: sidebar(titles()),
    outline: [2, 3],
    // The index is a file of the site: search needs no other server.
    search: {
      provider: 'local',
      options: {
        _render: (text, env, markdown) => (isSearched(env.relativePath) ? markdown.render(text, env) : ''),
      },
    },
    socialLinks: [{ icon: 'github', link: 'https://github.com/torchserve-ts/torchserve-ts' }],
  },
})
